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
  'ownerlessMs',
  'leaseLeftMs',
  'behind',
  'after',
  'part',
  'model',
  'digest',
  'recovery',
  'finishReason',
  'outcome',
  'cut',
  'told',
  'result',
  'nextAttemptAt',
  'delayMs',
  'announcedMs',
  'expiredAt',
  'interactionId',
  'maxTotalTokens',
  'maxTurns',
  'consumed',
  'reconciled',
]);

export function fullEvent(entry: SequencedEntry): RunEvent {
  const { type, sequence, at, ...rest } = entry;
  return { id: sequence, type, data: { at: new Date(at).toISOString(), ...rest } } as RunEvent;
}

export function lifecycleEvent(entry: SequencedEntry): LifecycleRunEvent {
  return {
    id: entry.sequence,
    type: entry.type,
    data: { at: new Date(entry.at).toISOString(), ...lifecycleFacts(entry) },
  };
}

export function lifecycleFacts(entry: JournalEntry): Record<string, string | number | boolean | null> {
  const facts: Record<string, string | number | boolean | null> = {};
  for (const [name, value] of Object.entries(entry)) {
    if (!LIFECYCLE_FACTS.has(name)) continue;
    if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
      facts[name] = value;
  }
  if ('error' in entry && entry.error) facts.errorCode = entry.error.code;
  if (entry.type === 'run.attention_needed') facts.reason = entry.attention.reason;
  if (entry.type === 'run.suspended') facts.waitingFor = entry.waitingFor.join(',');
  if (entry.type === 'model.completed') {
    facts.calls = entry.calls.length;
    if (entry.usage.totalTokens !== undefined) facts.totalTokens = entry.usage.totalTokens;
  }
  return facts;
}
