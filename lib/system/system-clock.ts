import { LONGEST_TIMER_MS } from '../contracts/duration.js';
import type { Clock } from '../contracts/ports/system.port.js';

/** A wall clock that runs ahead of the monotonic one by more than this was set, or the machine stood still. */
const JUMP_MS = 100;

/**
 * The process's time. Waits are measured on the monotonic clock, so that a change of the wall clock neither shortens nor lengthens them. Node's timers take
 * at most 2^31 - 1 ms and fire at once, with a warning, beyond it; longer waits are slept in pieces.
 */
export class SystemClock implements Clock {
  private aheadBy = Date.now() - performance.now();
  private suspendedMs = 0;

  now(): number {
    return Date.now();
  }

  /**
   * Linux stops the monotonic clock while a machine is suspended, and a hypervisor stops every clock of a paused guest; the wall clock alone shows the gap
   * afterwards. A jump ahead of it is therefore time that passed. It may also have been set by hand: then a deadline comes early, which is the safe side.
   * Set back, it changes nothing.
   */
  elapsed(): number {
    const monotonic = performance.now();
    const jumpMs = Date.now() - monotonic - this.aheadBy;
    if (Math.abs(jumpMs) > JUMP_MS) {
      this.aheadBy += jumpMs;
      this.suspendedMs += Math.max(0, jumpMs);
    }
    return monotonic + this.suspendedMs;
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
