/**
 * `maxPendingRuns`: how many pending and queued runs all processes together may have accepted. Far from the limit the count is kept from
 * the last look and what this process added since; near it every start counts anew, so that a small limit is exact and a large one costs nothing.
 */
import { TooManyPendingError } from '../errors/request/too-many-pending.error.js';
import type { EnginePorts } from './engine-ports.js';

const TRUSTED_MS = 1_000;
const NEAR = 0.9;

export class PendingLimit {
  private counted = 0;
  private addedSince = 0;
  private lookedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly ports: Pick<EnginePorts, 'store' | 'clock' | 'options'>) {}

  /**
   * @param transaction of the host in which the run is to be created
   * @returns gives the refusal, or null when one more fits; asked only for a run that would wait
   */
  async check(transaction?: unknown): Promise<() => TooManyPendingError | null> {
    const limit = this.ports.options.maxPendingRuns;
    const stale = this.ports.clock.elapsed() - this.lookedAt > TRUSTED_MS;
    if (stale || this.counted + this.addedSince >= limit * NEAR) {
      this.counted = await this.ports.store.countPending(limit, transaction);
      this.addedSince = 0;
      this.lookedAt = this.ports.clock.elapsed();
    }
    const pending = this.counted + this.addedSince;
    if (pending < limit) return () => null;
    return () =>
      new TooManyPendingError(`${pending} runs are waiting already; maxPendingRuns allows ${limit}. Try again later.`, {
        details: { retryAfterMs: 1_000 },
      });
  }

  added(): void {
    this.addedSince += 1;
  }
}
