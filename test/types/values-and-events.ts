// Checked by `npm run typecheck`: JSON forms, events, probes, decisions, and the classes of the host's own parts.
import * as agentRuns from 'nestjs-agent-runs';
import {
  type InteractionResponse,
  type InterruptedToolCall,
  type JsonOf,
  type JsonValue,
  type LifecycleEvent,
  ObserveRuns,
  outcomeUnknown,
  RecoverTool,
  ResolveApprovals,
  type RunService,
  ScreenInput,
  type ToolContext,
} from 'nestjs-agent-runs';
import { type Equal, exactly, is } from './equal.js';

class Money {
  constructor(
    readonly cents: bigint,
    readonly at: Date,
  ) {}

  text() {
    return String(this.cents);
  }
}

is<Equal<JsonOf<Date>, string>>(true);
is<Equal<JsonOf<Money>, { readonly cents: string; readonly at: string }>>(true);
is<Equal<JsonOf<{ a?: Date; b: number | undefined; c: null }>, { a?: string; c: null; b?: number }>>(true);
is<Equal<JsonOf<readonly Date[]>, string[]>>(true);
is<Equal<JsonOf<[Date, 1]>, [string, 1]>>(true);
is<Equal<JsonOf<undefined>, null>>(true);
is<Equal<JsonOf<Map<string, number>>, never>>(true);
is<Equal<JsonOf<unknown>, JsonValue>>(true);
is<Equal<JsonOf<'a' | Date | undefined>, string | null>>(true);

export async function steps({ step }: ToolContext) {
  const at = await step('at', () => new Date());
  exactly<string>()(at, true);
  const order = await step('order', async () => ({ id: 'o-17', paidAt: new Date() }));
  exactly<{ id: string; paidAt: string }>()(order, true);
  is<Equal<Awaited<ReturnType<typeof step<void>>>, null>>(true);
}

export async function events(runs: RunService) {
  const { events: full } = await runs.events('run-1');
  for (const event of full) {
    if (event.type === 'tool.completed') is<Equal<typeof event.data.output, JsonValue>>(true);
    if (event.type === 'interaction.requested') exactly<string | null>()(event.data.expiresAt, true);
    if (event.type === 'run.resumed') is<Equal<typeof event.data.attempt, number>>(true);
    is<Equal<typeof event.data.at, string>>(true);
    // @ts-expect-error -- there is no such event
    if (event.type === 'tool.finished') return;
  }
  const { events: lifecycle } = await runs.events('run-1', { projection: 'lifecycle' });
  for (const event of lifecycle) {
    is<Equal<(typeof event.data)['key'], string | number | boolean | null>>(true);
    // @ts-expect-error -- there is no such event
    if (event.type === 'tool.finished') return;
  }
}

export class Probes {
  @RecoverTool('refund_payment')
  async probe({ operationId }: InterruptedToolCall) {
    return operationId === '' ? outcomeUnknown() : agentRuns.happened({ id: 1 });
  }

  // @ts-expect-error -- what the call returned is no answer of a probe
  @RecoverTool('refund_payment')
  wrong() {
    return { id: 1 };
  }
}

// @ts-expect-error -- a name that hides TypeScript's own `unknown`
void agentRuns.unknown;

export const decisions: InteractionResponse[] = [
  { decision: 'approve', by: 'carol', arguments: { amountCents: 1 } },
  { decision: 'deny', by: 'carol', note: 'too much' },
  { action: 'accept', by: 'carol', answers: { q1: 'yes' } },
  // @ts-expect-error -- who decides is `by`, everywhere
  { decision: 'approve', approver: 'carol' },
];

@ObserveRuns()
export class Observer {
  onEvent({ type }: LifecycleEvent) {
    // @ts-expect-error -- there is no such event
    void (type === 'run.done');
  }
}

// @ts-expect-error -- nothing here hears an event
@ObserveRuns()
export class Deaf {}

// @ts-expect-error -- nothing here screens
@ScreenInput()
export class Blind {}

// @ts-expect-error -- a decision needs `by`
@ResolveApprovals()
export class Anonymous {
  resolve() {
    return { decision: 'approve' } as const;
  }
}
