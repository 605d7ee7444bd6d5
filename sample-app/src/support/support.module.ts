import { Module } from '@nestjs/common';
import { LedgerModule } from '../ledger/ledger.module.js';
import { SUPPORT_AGENTS } from './support.agents.js';
import { MailTools } from './tools/mail.tools.js';
import { OrderTools } from './tools/order.tools.js';
import { PaymentTools } from './tools/payment.tools.js';

/** Agents and tools are ordinary providers. */
@Module({
  imports: [LedgerModule],
  providers: [...SUPPORT_AGENTS, OrderTools, PaymentTools, MailTools],
})
export class SupportModule {}
