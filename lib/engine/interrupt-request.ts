/**
 * A stop that a caller wants of a run which somebody else executes: a note on the run's row, because the journal is the owner's. It is
 * journaled once, with who asked and why, under the lock of the row: by the owner's next transaction, or by whoever takes it off the row before.
 */
import type { JournalEntry } from '../contracts/journal-entry.js';
import type { LockedRun, TransitionDecision } from '../contracts/ports/run-store.port.js';
import type { RunRecord } from '../contracts/run.js';

/** The entry that is still owed; none when there is no such note, or the journal has it already. */
export function pendingInterruptEntries({
  interruptRequest: wanted,
}: Pick<RunRecord, 'interruptRequest'>): JournalEntry[] {
  if (wanted === null || wanted.journaled) return [];
  const { at, by, reason } = wanted;
  return [
    {
      type: 'run.interrupt_requested',
      at,
      ...(by !== undefined && { by }),
      ...(reason !== undefined && { reason }),
    },
  ];
}

/** For one transaction that may be tried again after a COMMIT whose answer was lost: the row no longer says then what was written. */
export function pendingInterruptOnce(): (run: Pick<RunRecord, 'interruptRequest'>) => JournalEntry[] {
  let owed: JournalEntry[] = [];
  return (run) => {
    const found = pendingInterruptEntries(run);
    if (found.length > 0) owed = found;
    return owed;
  };
}

/** Journals the stop that a decision takes off the row, before what the decision says. */
export function withPendingInterrupt<T extends JournalEntry[] | null>(
  { run }: Pick<LockedRun, 'run'>,
  decision: TransitionDecision<T>,
): TransitionDecision<T> {
  const owed = pendingInterruptEntries(run);
  if (decision.run?.change.interruptRequest !== null || owed.length === 0) return decision;
  return {
    ...decision,
    result: [...owed, ...(decision.result ?? [])] as T,
    run: { ...decision.run, entries: [...owed, ...decision.run.entries] },
  };
}
