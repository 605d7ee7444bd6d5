/**
 * How a worker takes runs out of a queue that others look at too. Alone it takes them in their order. Where others are faster with what it has found, it looks
 * further down the line and takes any of what it finds there, and comes back to the front step by step.
 */
import type { DueAnswer } from '../contracts/ports/run-store.port.js';

/** At most so many times the free slots are looked at: as many workers share a queue without trying the same runs. */
const MAX_SPREAD = 32;
/** Half of the pause after the first look in which others were faster. */
const AFTER_LOST_LOOK_MS = 5;

export type Claimable = DueAnswer['claimable'][number];

export class SharedQueue {
  /** How many times more runs a look asks for than there are slots: those in front are wanted by all. */
  private spread = 1;
  /** Looks in a row that found runs and could claim none of them: others are claiming them. */
  private lostLooks = 0;

  constructor(private readonly random: () => number) {}

  /** How many runs a look asks for. */
  limit(slots: number): number {
    return slots * this.spread;
  }

  /** As many as there are slots: the first ones, or where others are after those, any of them. */
  pick(claimable: readonly Claimable[], slots: number): Claimable[] {
    if (this.spread === 1 || claimable.length <= slots) return claimable.slice(0, slots);
    const lots = claimable.map((run) => ({ run, lot: this.random() })).sort((a, b) => a.lot - b.lot);
    return lots.slice(0, slots).map(({ run }) => run);
  }

  /** Wider at once where others were faster, and narrower again step by step. */
  learn(tried: number, claimed: number): void {
    if (claimed < tried / 2) this.spread = Math.min(MAX_SPREAD, this.spread * 4);
    else if (claimed === tried) this.spread = Math.max(1, this.spread - 1);
    this.lostLooks = tried > 0 && claimed === 0 ? this.lostLooks + 1 : 0;
  }

  /** There was nothing to try for, or no telling. */
  rest(): void {
    this.lostLooks = 0;
  }

  /**
   * Until the next look, where all was lost to others, who are done with it by then; ever later where somebody holds the rows for long. Null where it was not.
   * @param atMostMs the poll
   */
  pauseMs(atMostMs: number): number | null {
    if (this.lostLooks === 0) return null;
    return Math.min(atMostMs, AFTER_LOST_LOOK_MS * 2 ** this.lostLooks) * (1 - this.random() * 0.5);
  }
}
