import type { Clock } from '../contracts/ports/system.port.js';

/** Wakes waiters of this process when a run moved. Moves by other processes are found by polling. */
export class RunSignals {
  private readonly waiters = new Map<string, Set<() => void>>();
  /** This process is about to end: nothing waits any more. */
  isReleased = false;

  constructor(private readonly clock: Clock) {}

  /** Lets all waiters go, and those that come. */
  release(): void {
    this.isReleased = true;
    for (const runId of [...this.waiters.keys()]) this.moved(runId);
  }

  moved(runId: string): void {
    const waiting = this.waiters.get(runId);
    this.waiters.delete(runId);
    waiting?.forEach((wake) => wake());
  }

  /**
   * Listens from now on, so that a caller that reads the run afterwards misses nothing.
   * @returns `moved` resolves when the run moved in this process, after `ms`, when the signal aborts, or with `stop`
   */
  listen(runId: string, ms: number, signal?: AbortSignal): { moved: Promise<void>; stop: () => void } {
    let resolve!: () => void;
    const moved = new Promise<void>((done) => (resolve = done));
    const stop = (): void => {
      cancel();
      signal?.removeEventListener('abort', stop);
      const waiting = this.waiters.get(runId);
      waiting?.delete(stop);
      if (waiting?.size === 0) this.waiters.delete(runId);
      resolve();
    };
    const cancel = this.clock.after(ms, stop);
    const waiting = this.waiters.get(runId) ?? new Set();
    this.waiters.set(runId, waiting.add(stop));
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
    return { moved, stop };
  }
}
