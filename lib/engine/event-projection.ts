/** Entries as streams and observers see them. `full` carries everything; `lifecycle` an allow-list of facts without content. */
import type { JournalEntry, SequencedEntry } from '../contracts/journal-entry.js';
import type { LifecycleRunEvent, RunEvent } from '../contracts/run-view.js';

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

/** Points in time are epoch ms in the journal, under `at` or a name that ends in `At`, and ISO 8601 text for everybody else. */
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
