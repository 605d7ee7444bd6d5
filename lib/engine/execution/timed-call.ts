/**
 * A call with a time limit that holds even when the callee ignores its abort signal. The limit aborts the signal and lets go of the callee; what
 * it still does is a zombie, whose end the caller may wait for and whose result nobody uses.
 */
import type { Clock } from '../../contracts/ports/clock.port.js';

export type TimedResult<T> =
  { ended: 'returned'; value: T } | { ended: 'threw'; error: unknown } | { ended: 'timed_out'; zombie: Promise<void> };

/**
 * @param limitMs null = no limit
 * @param controller aborted by the limit; the caller may abort it too, which by itself ends nothing
 */
export function timedCall<T>(
  clock: Clock,
  limitMs: number | null,
  controller: AbortController,
  work: () => Promise<T>,
): Promise<TimedResult<T>> {
  return new Promise((resolve) => {
    let cancelTimer: (() => void) | undefined;
    // An async wrapper, so that a synchronous throw of foreign code is a rejection like any other.
    const running = (async () => work())();
    const zombie = running.then(
      () => undefined,
      () => undefined,
    );
    if (limitMs !== null) {
      cancelTimer = clock.after(limitMs, () => {
        resolve({ ended: 'timed_out', zombie });
        controller.abort(new Error(`timed out after ${limitMs} ms`));
      });
    }
    running.then(
      (value) => {
        cancelTimer?.();
        resolve({ ended: 'returned', value });
      },
      (error: unknown) => {
        cancelTimer?.();
        resolve({ ended: 'threw', error });
      },
    );
  });
}
