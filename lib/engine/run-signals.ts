/** Wakes waiters of this process when a run moved. Other processes' moves are seen by looking again now and then. */
import type { Clock } from '../contracts/ports/clock.port.js';

export class RunSignals {
  private readonly waiters = new Map<string, Set<() => void>>();

  constructor(private readonly clock: Clock) {}

  moved(runId: string): void {
    const waiting = this.waiters.get(runId);
    this.waiters.delete(runId);
    waiting?.forEach((wake) => wake());
  }

  /** Resolves when the run moved in this process, or after `ms`, or when the signal aborts. */
  next(runId: string, ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        cancel();
        signal?.removeEventListener('abort', done);
        const waiting = this.waiters.get(runId);
        waiting?.delete(done);
        if (waiting?.size === 0) this.waiters.delete(runId);
        resolve();
      };
      const cancel = this.clock.after(ms, done);
      const waiting = this.waiters.get(runId) ?? new Set();
      this.waiters.set(runId, waiting.add(done));
      if (signal?.aborted) done();
      else signal?.addEventListener('abort', done, { once: true });
    });
  }
}
