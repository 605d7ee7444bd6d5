/** When a run must stop: its absolute deadline or the end of its active time, whichever is first, by the store's clock. */
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { Clock } from '../../contracts/ports/clock.port.js';
import type { RunRecord } from '../../contracts/run.js';
import type { RunState } from '../journal/run-state.js';

export class RunDeadline {
  /** Epoch ms by the store's clock; null = never. */
  readonly limitAt: number | null;
  private readonly claimedAt: number;
  private cancel: (() => void) | null = null;

  constructor(
    private readonly clock: Clock,
    run: Pick<RunRecord, 'claimedAt' | 'deadlineAt' | 'activeMs' | 'frozen'>,
  ) {
    this.claimedAt = run.claimedAt ?? clock.now();
    const ends = [
      run.deadlineAt,
      run.frozen.maxDurationMs === null ? null : this.claimedAt + run.frozen.maxDurationMs - run.activeMs,
    ].filter((at) => at !== null);
    this.limitAt = ends.length === 0 ? null : Math.min(...ends);
  }

  /** Counted from the claim, which the store's clock dated, so that a skewed process clock does not matter. */
  arm(onPassed: () => void): void {
    if (this.limitAt !== null) this.cancel = this.clock.after(Math.max(1, this.limitAt - this.claimedAt), onPassed);
  }

  disarm(): void {
    this.cancel?.();
  }
}

/** Calls that a deadline cuts off: their effect stays on record as uncertain. */
export function cutByDeadline(state: RunState, inFlight: { has(key: string): boolean }, at: number): JournalEntry[] {
  return state.calls
    .filter(({ key }) => inFlight.has(key))
    .map(({ key, name }) => ({
      type: 'tool.uncertain',
      at,
      key,
      tool: name,
      interruptedBy: 'timeout',
      reportedToModel: false,
    }));
}
