import { TooManyPendingError } from '../errors/request.errors.js';
import type { EnginePorts } from './engine-ports.js';

/** A count is trusted for so many ms. */
const POLL_MS = 1_000;
/** From this share of the limit on, every start counts anew. */
const NEAR = 0.9;

/**
 * Keeps `maxPendingRuns`: how many pending and queued runs all processes together may have accepted. Far from the limit
 * the last count is used, with what this process has added since; near it every start counts anew, so that a small
 * limit is exact and a large one costs nothing.
 */
export class PendingLimit {
  private counted = 0;
  private addedSince = 0;
  private countedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly ports: Pick<EnginePorts, 'store' | 'clock' | 'options'>) {}

  /**
   * @param transaction of the host in which the run is to be created
   * @returns gives the refusal, or null when one more fits; called only for a run that would wait
   */
  async check(transaction?: unknown): Promise<() => TooManyPendingError | null> {
    const { clock, store } = this.ports;
    const limit = this.ports.options.maxPendingRuns;
    const isStale = clock.elapsed() - this.countedAt > POLL_MS;
    if (isStale || this.counted + this.addedSince >= limit * NEAR) {
      this.counted = await store.countPending(limit, transaction);
      this.addedSince = 0;
      this.countedAt = clock.elapsed();
    }
    const pending = this.counted + this.addedSince;
    if (pending < limit) return () => null;
    const message = `${pending} runs are waiting already; maxPendingRuns allows ${limit}. Try again later.`;
    return () => new TooManyPendingError(message, { details: { retryAfterMs: 1_000 } });
  }

  added(): void {
    this.addedSince += 1;
  }
}
