import type { Clock } from '../contracts/ports/system.port.js';
import type { EnginePorts } from './engine-ports.js';

type TimedResult<T> =
  { ended: 'returned'; value: T } | { ended: 'threw'; error: unknown } | { ended: 'timed_out'; zombie: Promise<void> };

/** Begins the time anew, with another limit in ms; null = no limit. */
export type RestartLimit = (limitMs: number | null) => void;

/** The run that host code is called for. */
interface CallPlace {
  ports: Pick<EnginePorts, 'clock' | 'scope'>;
  runId: string;
  isTransactional?: boolean;
}

/**
 * Calls host code with a time limit that holds even when the callee ignores its abort signal. The limit aborts the
 * signal and stops waiting; what the callee still does is a zombie: its end can be awaited, its result is not used.
 * @param limitMs null = no limit
 * @param controller aborted by the limit; a caller may abort it too, which by itself ends nothing
 */
export function timedCall<T>(
  { ports: { clock, scope }, runId, isTransactional = false }: CallPlace,
  limitMs: number | null,
  controller: AbortController,
  work: (restart: RestartLimit) => Promise<T>,
): Promise<TimedResult<T>> {
  return new Promise((resolve) => {
    let isOver = false;
    let cancelTimer: (() => void) | null = null;
    const restart: RestartLimit = (ms) => {
      cancelTimer?.();
      if (ms === null || isOver) return;
      cancelTimer = clock.after(ms, () => {
        end({ ended: 'timed_out', zombie });
        controller.abort(new Error(`timed out after ${ms} ms`));
      });
    };
    const end = (result: TimedResult<T>): void => {
      isOver = true;
      cancelTimer?.();
      resolve(result);
    };
    restart(limitMs);
    // An async wrapper, so that a synchronous throw of foreign code is a rejection like any other.
    const running = scope.enter({ runId, signal: controller.signal, isTransactional }, async () => work(restart));
    const zombie = running.then(
      (value) => end({ ended: 'returned', value }),
      (error: unknown) => end({ ended: 'threw', error }),
    );
  });
}

/**
 * Waits for work that may hang. Never rejects.
 * @returns whether the work ended, in whatever way, within so many ms; otherwise it goes on, unobserved
 */
export async function endedWithin(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  let cancel: () => void = () => undefined;
  const passed = new Promise<false>((resolve) => (cancel = clock.after(ms, () => resolve(false))));
  const ended = work.then(
    () => true,
    () => true,
  );
  try {
    return await Promise.race([ended, passed]);
  } finally {
    cancel();
  }
}
