/**
 * A call with a time limit that holds even when the callee ignores its abort signal. The limit aborts the signal and lets go of the callee; what
 * it still does is a zombie, whose end the caller may wait for and whose result nobody uses.
 */
import type { EnginePorts } from '../engine-ports.js';

export type TimedResult<T> =
  { ended: 'returned'; value: T } | { ended: 'threw'; error: unknown } | { ended: 'timed_out'; zombie: Promise<void> };

/** Begins the time anew, with another limit. */
export type RestartLimit = (limitMs: number | null) => void;

/** For which run the host's code is called. */
export interface CallPlace {
  ports: Pick<EnginePorts, 'clock' | 'scope'>;
  runId: string;
  isTransactional?: boolean;
}

/**
 * @param limitMs null = no limit
 * @param controller aborted by the limit; the caller may abort it too, which by itself ends nothing
 */
export function timedCall<T>(
  { ports: { clock, scope }, runId, isTransactional = false }: CallPlace,
  limitMs: number | null,
  controller: AbortController,
  work: (restart: RestartLimit) => Promise<T>,
): Promise<TimedResult<T>> {
  return new Promise((resolve) => {
    let isOver = false;
    let cancelTimer: () => void = () => undefined;
    const restart: RestartLimit = (ms) => {
      cancelTimer();
      if (ms === null || isOver) return;
      cancelTimer = clock.after(ms, () => {
        end({ ended: 'timed_out', zombie });
        controller.abort(new Error(`timed out after ${ms} ms`));
      });
    };
    const end = (result: TimedResult<T>): void => {
      isOver = true;
      cancelTimer();
      resolve(result);
    };
    restart(limitMs);
    // An async wrapper, so that a synchronous throw of foreign code is a rejection like any other.
    const call = { runId, signal: controller.signal, isTransactional };
    const running = scope.enter(call, async () => work(restart));
    const zombie = running.then(
      (value) => end({ ended: 'returned', value }),
      (error: unknown) => end({ ended: 'threw', error }),
    );
  });
}
