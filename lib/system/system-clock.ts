/**
 * The process's time (port Clock). Node's timers take at most 2^31 - 1 ms and fire at once, with a warning, beyond it; longer waits are slept in pieces.
 * Waits are measured on the monotonic clock, so that a change of the wall clock neither shortens nor lengthens them.
 */
import { LONGEST_TIMER_MS } from '../contracts/duration.js';
import type { Clock } from '../contracts/ports/clock.port.js';

export class SystemClock implements Clock {
  now(): number {
    return Date.now();
  }

  /** @param ms waits at least as long; anything that is no positive number counts as 0, `Infinity` never comes */
  after(ms: number, callback: () => void): () => void {
    const due = performance.now() + (ms > 0 ? ms : 0);
    let timer: NodeJS.Timeout | undefined;
    const arm = (left: number): void => {
      // Node truncates fractions: without the rounding a timer may come a moment too early.
      timer = setTimeout(check, Math.min(Math.ceil(Math.max(0, left)), LONGEST_TIMER_MS));
      timer.unref();
    };
    const check = (): void => {
      const left = due - performance.now();
      if (left > 0) return arm(left);
      timer = undefined;
      callback();
    };
    arm(due - performance.now());
    return () => {
      clearTimeout(timer);
      timer = undefined;
    };
  }
}
