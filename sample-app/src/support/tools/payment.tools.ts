import { Injectable } from '@nestjs/common';
import { IsInt, IsString, Length, Max, Min } from 'class-validator';
import {
  AgentTool,
  type InterruptedToolCall,
  type ProbeResult,
  RecoverTool,
  type ToolContext,
  didNotHappen,
  happened,
} from 'nestjs-agent-runs';
import { Ledger } from '../../ledger/ledger.js';

export class PaymentDto {
  @IsString()
  @Length(1, 64)
  orderId!: string;

  @IsInt()
  @Min(1)
  @Max(100_000_000)
  amountCents!: number;
}

/** A larger refund is paid only when a person has approved it. */
const FREE_REFUND_CENTS = 10_000;

@Injectable()
export class PaymentTools {
  constructor(private readonly ledger: Ledger) {}

  @AgentTool({
    name: 'refund_payment',
    description: 'Pays money of an order back to its customer.',
    input: PaymentDto,
    recovery: 'idempotent',
    approval: ({ amountCents }) =>
      amountCents > FREE_REFUND_CENTS && {
        reason: `Refunds of more than ${FREE_REFUND_CENTS / 100} EUR are approved.`,
      },
  })
  refund(payment: PaymentDto, { operationId, signal }: ToolContext) {
    return this.ledger.record('refunds', operationId, payment, signal);
  }

  /** The far side would charge twice, but it can be asked. */
  @AgentTool({
    name: 'charge_card',
    description: 'Charges the card that an order was paid with.',
    input: PaymentDto,
    recovery: 'probe',
  })
  charge(payment: PaymentDto, { operationId, signal }: ToolContext) {
    return this.ledger.record('charges', operationId, payment, signal);
  }

  @RecoverTool('charge_card')
  async findCharge({ operationId, signal }: InterruptedToolCall): Promise<ProbeResult> {
    const charge = await this.ledger.findCharge(operationId, signal);
    return charge === null ? didNotHappen() : happened(charge);
  }
}
