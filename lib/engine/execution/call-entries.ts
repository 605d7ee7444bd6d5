import type { EntryOf, JournalEntry, RecordedError } from '../../contracts/journal-entry.js';
import type { OperationInterruption } from '../../contracts/operation.js';
import type { CallState } from '../journal/run-state.js';
import { recordedText } from '../values/recorded-error.js';

export function failedCall(
  { key }: Pick<CallState, 'key'>,
  at: number,
  error: RecordedError,
  outcome: EntryOf<'tool.failed'>['outcome'] = 'error',
): EntryOf<'tool.failed'> {
  return { type: 'tool.failed', at, key, outcome, error };
}

/**
 * A call that may have had its effect, which a person must settle, or, with `reportedToModel`, of which the model is
 * told.
 * @param interruptedBy null = nothing interrupted it
 */
export function uncertainCall(
  { key }: Pick<CallState, 'key'>,
  at: number,
  interruptedBy: OperationInterruption | null,
  more: Partial<Pick<EntryOf<'tool.uncertain'>, 'problem' | 'reason' | 'reportedToModel'>> = {},
): EntryOf<'tool.uncertain'> {
  return { type: 'tool.uncertain', at, key, interruptedBy, reportedToModel: false, ...more };
}

/**
 * Whether an execution before the one that is under way may have had an effect. What ran in a transaction has none: it
 * was rolled back.
 */
export function mayHaveBegun({ openAttempts, methodInteractions, steps, recovery }: CallState): boolean {
  return recovery !== 'transactional' && (openAttempts > 1 || methodInteractions.length > 0 || steps.size > 0);
}

/** A refusal before the method is entered is the call's result, unless an earlier execution may have had its effect. */
export function unlessBegun(call: CallState, refusal: JournalEntry & { at: number }, why: string): JournalEntry {
  if (call.recovery === 'safe' || !mayHaveBegun(call)) return refusal;
  return refusedRepetition(call, refusal.at, `it was interrupted, and its repetition was refused: ${why}`, true);
}

/** The outcome of an earlier execution is unknown, and the call must not be repeated. */
export function refusedRepetition(
  call: CallState,
  at: number,
  problem: string,
  isInterrupted: boolean,
  reason?: EntryOf<'tool.uncertain'>['reason'],
): EntryOf<'tool.uncertain'> {
  // A method that asked was left, not interrupted.
  const interruptedBy = isInterrupted && call.methodInteractions.length === 0 ? 'crash' : null;
  return uncertainCall(call, at, interruptedBy, { problem: recordedText(problem), ...(reason && { reason }) });
}
