import { Injectable } from '@nestjs/common';
import { IsString, Length } from 'class-validator';
import { AgentTool, type ToolContext } from 'nestjs-agent-runs';
import { Ledger } from '../../ledger/ledger.js';

export class OrderDto {
  @IsString()
  @Length(1, 64)
  orderId!: string;
}

@Injectable()
export class OrderTools {
  constructor(private readonly ledger: Ledger) {}

  /** A read: after a crash it is simply read again. */
  @AgentTool({
    name: 'lookup_order',
    description: 'Finds an order: its customer, their email address and its amount.',
    input: OrderDto,
    recovery: 'safe',
  })
  lookUp({ orderId }: OrderDto, { signal }: ToolContext) {
    return this.ledger.order(orderId, signal);
  }

  /** The model can cope with not knowing: after a crash it is told so, and nothing is shipped twice. */
  @AgentTool({ name: 'ship_order', description: 'Ships an order.', input: OrderDto, recovery: 'inform' })
  ship(order: OrderDto, { operationId, signal }: ToolContext) {
    return this.ledger.record('shipments', operationId, order, signal);
  }

  /** The far side honours the key: after a crash it is asked again under the same one. */
  @AgentTool({ name: 'close_order', description: 'Closes an order for good.', input: OrderDto, recovery: 'idempotent' })
  close(order: OrderDto, { operationId, signal }: ToolContext) {
    return this.ledger.record('closings', operationId, order, signal);
  }
}
