/** A `waiting` run wakes when the last of the things it waits for is there, and not before. */
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { LockedRun, RunWrites } from '../../contracts/ports/run-store.port.js';
import type { WaitReason } from '../../contracts/run-status.js';
import type { RunChange, RunRecord } from '../../contracts/run.js';

export function hasBudgetLeft(run: RunRecord, limit: number | null): boolean {
  return limit === null || run.totals.usage.totalTokens < limit;
}

/**
 * What a waiting run writes when one of its reasons is gone but others are left; null when none is left.
 * @param gone the reason that has been met
 */
export function stillWaiting(
  locked: LockedRun,
  gone: WaitReason,
  entries: JournalEntry[],
  change: RunChange = {},
): RunWrites | null {
  const left = locked.run.waitingFor.filter((reason) => reason !== gone);
  return left.length === 0 ? null : { run: { change: { ...change, waitingFor: left }, entries } };
}
