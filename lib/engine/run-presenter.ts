import type { JournalEntry, SequencedEntry } from '../contracts/journal-entry.js';
import type {
  InteractionView,
  LifecycleRunEvent,
  OperationView,
  Run,
  RunEvent,
  RunSummaryView,
} from '../contracts/run-view.js';
import type { Interaction } from '../contracts/interaction.js';
import type { Operation } from '../contracts/operation.js';
import type { LeaseView } from '../contracts/ports/run-store.port.js';
import { isSettled, phaseOf, type RunStatus } from '../contracts/run-status.js';
import type { RunRecord, RunSummary } from '../contracts/run.js';
import type { PastGeneration, RunState } from './journal/run-state.js';

type Shown<T> = { [K in keyof T as null extends T[K] ? never : K]: ShownField<K, T[K]> } & {
  [K in keyof T as null extends T[K] ? K : never]?: ShownField<K, NonNullable<T[K]>>;
};
type ShownField<K, V> = K extends `${string}At` ? Date : V;

/** Stored fields as callers see them: absent instead of null, points in time as `Date`s. */
function shown<T extends object>(stored: T): Shown<T> {
  const view: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(stored))
    if (value !== null) view[name] = name.endsWith('At') ? new Date(value as number) : value;
  return view as Shown<T>;
}

export function presentRun(
  run: RunRecord,
  lease: LeaseView | null,
  interactions: readonly Interaction[],
  previous: readonly PastGeneration[] = [],
): Run {
  return {
    ...presentSummary(run),
    ...(run.requestScope.startsWith('run:') ? {} : { requestId: run.requestId }),
    ...(run.budgetMaxTotalTokens !== null && { budget: { maxTotalTokens: run.budgetMaxTotalTokens } }),
    ...shown({ output: run.output, error: run.error }),
    interactions: interactions.map(presentInteraction),
    definitionHash: run.definitionHash,
    contractVersion: run.contractVersion,
    restarts: run.restarts,
    previousGenerations: previous.map((generation) => shown(generation)),
    recoveries: run.recoveries,
    ...(run.deadlineAt !== null && { deadline: new Date(run.deadlineAt) }),
    ...(lease && { lease: shown(lease) }),
  };
}

export function presentSummary(run: RunSummary): RunSummaryView {
  return {
    id: run.id,
    agent: run.agent,
    version: run.version,
    status: run.status,
    phase: phaseOf(run.status),
    ...(run.waitingFor.length > 0 && { waitingFor: run.waitingFor }),
    ...shown({ attention: run.attention, sessionId: run.sessionId, actor: run.actor }),
    attempt: run.attempt,
    sequence: run.sequence,
    turn: run.totals.turn,
    usage: run.totals.usage,
    ...(Object.keys(run.metadata).length > 0 && { metadata: run.metadata }),
    ...shown({ nextAttemptAt: run.nextAttemptAt, createdAt: run.createdAt, updatedAt: run.updatedAt }),
    ...shown({ startedAt: run.startedAt, finishedAt: run.finishedAt }),
  };
}

export function presentInteraction({ createdAt, expiresAt, decidedAt, ...rest }: Interaction): InteractionView {
  return {
    ...rest,
    ...shown({ createdAt, expiresAt, decidedAt }),
  };
}

/** What a settled run left begun is shown as interrupted, not as still in progress. */
export function presentOperations(run: RunRecord, state: RunState): OperationView[] {
  const settled = isSettled(run.status);
  return [...state.operations.values()].map(({ startedAt, finishedAt, ...operation }): OperationView => ({
    ...operation,
    ...shown({ startedAt, finishedAt }),
    ...(settled && interruptedBySettling(operation, run.status)),
  }));
}

function interruptedBySettling(
  { kind, status }: Pick<Operation, 'kind' | 'status'>,
  ending: RunStatus,
): Partial<OperationView> {
  if (status === 'waiting') return { status: 'not_run' };
  if (status !== 'started') return {};
  return kind === 'model'
    ? { status: 'cancelled' }
    : { status: 'uncertain', interruptedBy: ending === 'timed_out' ? 'timeout' : 'cancel' };
}

/** Facts that say nothing about prompts, arguments or results. */
const LIFECYCLE_FACTS: ReadonlySet<string> = new Set([
  'key',
  'attempt',
  'cause',
  'owner',
  'previousOwner',
  'unownedForMs',
  'leaseRemainingMs',
  'behindRunId',
  'afterRunId',
  'generation',
  'by',
  'sender',
  'requestId',
  'tool',
  'kind',
  'approverRole',
  'model',
  'digest',
  'recovery',
  'finishReason',
  'outcome',
  'interruptedBy',
  'reportedToModel',
  'result',
  'nextAttemptAt',
  'delayMs',
  'retryAfterMs',
  'expiredAt',
  'expiresAt',
  'interactionId',
  'maxTotalTokens',
  'maxTurns',
  'consumed',
  'reconciled',
]);

/**
 * Entries as streams and observers see them. `full` carries everything; `lifecycle` an allow-list of facts without
 * content.
 */
export function fullEvent({ type, sequence, ...entry }: SequencedEntry): RunEvent {
  const data = Object.entries(entry).map(([name, value]) => [name, shownTime(name, value)] as const);
  return { id: sequence, type, data: Object.fromEntries(data) } as RunEvent;
}

export function lifecycleEvent(entry: SequencedEntry): LifecycleRunEvent {
  return {
    id: entry.sequence,
    type: entry.type,
    data: { at: new Date(entry.at).toISOString(), ...lifecycleFacts(entry) },
  };
}

/**
 * Points in time are epoch ms in the journal, under `at` or a name that ends in `At`, and ISO 8601 text for everybody
 * else.
 */
function shownTime(name: string, value: unknown): unknown {
  return typeof value === 'number' && /(?:^a|A)t$/.test(name) ? new Date(value).toISOString() : value;
}

export function lifecycleFacts(entry: JournalEntry): Record<string, string | number | boolean | null> {
  const facts: Record<string, string | number | boolean | null> = {};
  for (const [name, stored] of Object.entries(entry)) {
    if (!LIFECYCLE_FACTS.has(name)) continue;
    const value: unknown = shownTime(name, stored);
    if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
      facts[name] = value;
  }
  if ('error' in entry && entry.error) facts.errorCode = entry.error.code;
  if (entry.type === 'run.attention_needed') facts.reason = entry.attention.reason;
  if (entry.type === 'run.suspended') facts.waitingFor = entry.waitingFor.join(',');
  if (entry.type === 'run.submitted' && entry.actor) facts.actor = entry.actor.id;
  if ('withdrawn' in entry && entry.withdrawn) facts.withdrawn = entry.withdrawn.length;
  if ('decision' in entry) {
    const { decision } = entry;
    facts.decision = 'decision' in decision ? decision.decision : decision.action;
    facts.by = decision.by;
    if ('arguments' in decision) facts.isEdited = true;
  }
  if (entry.type === 'model.completed') facts.calls = entry.calls.length;
  if ('usage' in entry && entry.usage?.totalTokens !== undefined) facts.totalTokens = entry.usage.totalTokens;
  return facts;
}
