import { Module } from '@nestjs/common';
import { LedgerModule } from '../ledger/ledger.module.js';
import { settings } from '../settings/current.settings.js';
import { supportAgents } from './support.agents.js';
import { MailTools } from './tools/mail.tools.js';
import { OrderTools } from './tools/order.tools.js';
import { PaymentTools } from './tools/payment.tools.js';

/** Agents and tools are ordinary providers. */
@Module({
  imports: [LedgerModule],
  providers: [...supportAgents(settings), OrderTools, PaymentTools, MailTools],
})
export class SupportModule {}
