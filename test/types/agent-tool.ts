// Checked by `npm run typecheck`: what the compiler takes and refuses of a tool's method.
import { applyDecorators, SetMetadata } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { AgentTool, type JsonObject, type JsonSchema, type RecoveryPolicy, type ToolContext } from 'nestjs-agent-runs';
import type { ToolContext as TransactionContext } from 'nestjs-agent-runs/typeorm';
import { z } from 'zod';
import { exactly } from './equal.js';

class RefundDto {
  orderId!: string;
  amountCents!: number;
}

const dto = { name: 'refund', description: 'Refunds.', input: RefundDto } as const;
const zod = {
  ...dto,
  input: z.object({ orderId: z.string(), day: z.coerce.date().optional(), cents: z.number().default(1) }),
};
const lookUp = {
  ...dto,
  input: {
    type: 'object',
    properties: {
      orderId: { type: 'string' },
      limit: { type: 'integer', default: 10 },
      state: { enum: ['paid', 'sent'] },
      tags: { type: 'array', items: { type: 'string' } },
      range: { type: 'object', properties: { from: { type: 'number' } }, required: ['from'] },
      note: { type: ['string', 'null'] },
      what: { anyOf: [{ const: 'all' }, { type: 'number' }] },
    },
    required: ['orderId', 'state'],
  },
} as const;
declare const anySchema: JsonSchema;
declare const anyPolicy: RecoveryPolicy;

export class ByClass {
  @AgentTool(dto)
  whole(_refund: RefundDto, _context: ToolContext) {}

  @AgentTool(dto)
  less(_refund: { amountCents: number }) {}

  @AgentTool(dto)
  nothing() {}

  // @ts-expect-error -- amountCents is a number
  @AgentTool(dto)
  wrong(_refund: { amountCents: string }) {}

  // @ts-expect-error -- the schema gives no currency
  @AgentTool(dto)
  more(_refund: RefundDto & { currency: string }) {}

  // @ts-expect-error -- nobody passes a third argument
  @AgentTool(dto)
  third(_refund: RefundDto, _context: ToolContext, _more: string) {}
}

export class ByStandardSchema {
  @AgentTool({ ...zod, approval: ({ day, cents }) => exactly<string | undefined>()(day, true) && cents > 100 })
  output(_input: { orderId: string; day?: Date; cents: number }) {}

  // @ts-expect-error -- the method gets the Date that the schema makes
  @AgentTool(zod)
  text(_input: { day?: string }) {}
}

export class ByJsonSchema {
  @AgentTool({
    ...dto,
    input: { properties: { amountCents: { type: 'integer' } }, required: ['amountCents'] },
    approval: ({ amountCents }) => exactly<number>()(amountCents, true) && amountCents > 10_000,
  })
  literal({ amountCents }: { amountCents: number }) {
    return amountCents;
  }

  @AgentTool(lookUp)
  rich(_input: {
    orderId: string;
    limit: number;
    state: 'paid' | 'sent';
    tags?: string[];
    range?: { from: number };
    note?: string | null;
    what?: 'all' | number;
  }) {}

  @AgentTool({ ...lookUp, recovery: 'safe' })
  open(_input: object) {}

  // @ts-expect-error -- tags may be missing
  @AgentTool(lookUp)
  missing(_input: { tags: string[] }) {}

  // @ts-expect-error -- orderId is a string
  @AgentTool(lookUp)
  wrong(_input: { orderId: number }) {}

  // @ts-expect-error -- `{}` is a tool without arguments
  @AgentTool({ ...dto, input: {} })
  argument(_input: { orderId: string }) {}

  @AgentTool({ ...dto, input: {} })
  none(_input: object, _context: ToolContext) {}

  // What the compiler cannot follow is the method's to say.
  @AgentTool({ ...dto, input: anySchema })
  loose(_input: { orderId: string }) {}

  @AgentTool({
    ...dto,
    input: { type: 'object', properties: { filter: { $ref: '#/$defs/filter' } }, required: ['filter'] },
  })
  reference(_input: { filter: { by: 'name' } }) {}

  @AgentTool({ ...dto, input: anySchema, approval: (args) => exactly<Readonly<JsonObject>>()(args, true) })
  rule() {}
}

export class Transactions {
  @AgentTool({ ...dto, recovery: 'transactional' })
  transactional(_refund: RefundDto, { manager }: TransactionContext) {
    exactly<EntityManager>()(manager, true);
  }

  @AgentTool({ ...dto, recovery: 'transactional' })
  without(_refund: RefundDto, _context: ToolContext) {}

  // @ts-expect-error -- an idempotent tool has no transaction
  @AgentTool({ ...dto, recovery: 'idempotent' })
  idempotent(_refund: RefundDto, _context: TransactionContext) {}

  // @ts-expect-error -- nor has one without a policy, which is manual
  @AgentTool(dto)
  byDefault(_refund: RefundDto, _context: TransactionContext) {}

  // @ts-expect-error -- nor one whose policy the compiler does not know
  @AgentTool({ ...dto, recovery: anyPolicy })
  unknownPolicy(_refund: RefundDto, _context: TransactionContext) {}

  @AgentTool(dto)
  inside(_refund: RefundDto, context: ToolContext) {
    // @ts-expect-error -- the context of other tools has no manager
    return context.manager as unknown;
  }
}

/** A decorator of the host's own, made of ours. */
const RefundTool = () => applyDecorators(SetMetadata('area', 'refunds'), AgentTool(dto));

export class Composed {
  @RefundTool()
  refund(_refund: RefundDto) {}
}
