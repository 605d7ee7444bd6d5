import type { Clock } from '../contracts/ports/system.port.js';
import { endedWithin } from './timed-call.js';

/**
 * Verbs of callers that were not answered yet: what they committed must not be answered as if it had failed, because
 * the store closes.
 */
export class Unanswered {
  private readonly works = new Set<Promise<unknown>>();

  constructor(private readonly clock: Clock) {}

  watch<T>(verb: () => Promise<T>): Promise<T> {
    const work = verb();
    this.works.add(work);
    const forget = (): void => void this.works.delete(work);
    work.then(forget, forget);
    return work;
  }

  /** Resolves when all were answered, or so many ms later. Never rejects. */
  async settled(ms: number): Promise<void> {
    let passed = false;
    const settled = (async () => {
      while (!passed && this.works.size > 0) {
        await Promise.allSettled(this.works);
        // A verb may consist of several: its next one begins in the same turn.
        await new Promise<void>((resolve) => this.clock.after(0, resolve));
      }
    })();
    await endedWithin(this.clock, ms, settled);
    passed = true;
  }
}
