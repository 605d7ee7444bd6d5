import type { Clock, RunScope, ScopedCall } from '../contracts/ports/system.port.js';
import type { EnginePorts } from './engine-ports.js';
import { StopSwitch } from './stop-switch.js';

type TimedResult<T> =
  { ended: 'returned'; value: T } | { ended: 'threw'; error: unknown } | { ended: 'timed_out'; zombie: Promise<void> };

/** Host code that is at work under a limit. */
export interface LimitedCall {
  /** Begins the time anew, with another limit in ms; null = no limit. */
  restart(limitMs: number | null): void;
}

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
 * @param stop aborted by the limit; a caller may abort it too, which by itself ends nothing
 */
export function timedCall<T>(
  { ports: { clock, scope }, runId, isTransactional = false }: CallPlace,
  limitMs: number | null,
  work: (call: LimitedCall) => T | Promise<T>,
  stop = new StopSwitch(),
): Promise<TimedResult<T>> {
  return new TimedCall<T>(clock, runId, isTransactional, stop).run(scope, limitMs, work);
}

class TimedCall<T> implements LimitedCall, ScopedCall {
  private resolve!: (result: TimedResult<T>) => void;
  private cancelTimer: (() => void) | null = null;
  private isOver = false;

  constructor(
    private readonly clock: Clock,
    readonly runId: string,
    readonly isTransactional: boolean,
    private readonly stop: StopSwitch,
  ) {}

  get signal(): AbortSignal {
    return this.stop.signal;
  }

  run(scope: RunScope, limitMs: number | null, work: (call: LimitedCall) => T | Promise<T>): Promise<TimedResult<T>> {
    const result = new Promise<TimedResult<T>>((resolve) => (this.resolve = resolve));
    this.zombie = this.worked(scope, limitMs, work);
    return result;
  }

  restart(limitMs: number | null): void {
    this.cancelTimer?.();
    if (limitMs === null || this.isOver) return;
    this.cancelTimer = this.clock.after(limitMs, () => {
      this.end({ ended: 'timed_out', zombie: this.zombie });
      this.stop.abort(new Error(`timed out after ${limitMs} ms`));
    });
  }

  private zombie!: Promise<void>;

  /** Never rejects: a synchronous throw of foreign code is like any other. */
  private async worked(
    scope: RunScope,
    limitMs: number | null,
    work: (call: LimitedCall) => T | Promise<T>,
  ): Promise<void> {
    this.restart(limitMs);
    try {
      this.end({ ended: 'returned', value: await scope.enter(this, () => work(this)) });
    } catch (error) {
      this.end({ ended: 'threw', error });
    }
  }

  private end(result: TimedResult<T>): void {
    this.isOver = true;
    this.cancelTimer?.();
    this.resolve(result);
  }
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
