import { hash, randomInt, randomUUID } from 'node:crypto';
import { AsyncLocalStorage } from 'node:async_hooks';
import { canonicalJson } from './canonical-json.js';
import { LONGEST_TIMER_MS } from '../contracts/duration.js';
import type { Clock, Digester, IdSource, RunScope, ScopedCall } from '../contracts/ports/system.port.js';

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

/** Ids and chance of the process (port IdSource). */
export class SystemIdSource implements IdSource {
  /** Of all instances, so that the order holds for the process. */
  private static ms = 0;
  private static count = 0;

  /**
   * UUIDv7 with a counter of 26 bits (RFC 9562, 6.2 method 1). Ascending as text within a process, even within a millisecond and when the wall clock is set
   * back; 25 bits of the counter's start and 48 more are random.
   */
  id(): string {
    const now = Date.now();
    if (now > SystemIdSource.ms) {
      SystemIdSource.ms = now;
      SystemIdSource.count = randomInt(2 ** 25);
    } else if (++SystemIdSource.count === 2 ** 26) {
      SystemIdSource.ms += 1;
      SystemIdSource.count = 0;
    }
    const { ms, count } = SystemIdSource;
    const time = ms.toString(16).padStart(12, '0');
    const high = (count >>> 14).toString(16).padStart(3, '0');
    const low = (0x8000 | (count & 0x3fff)).toString(16);
    return `${time.slice(0, 8)}-${time.slice(8)}-7${high}-${low}-${randomUUID().slice(24)}`;
  }

  /** For jitter; not for secrets. */
  random(): number {
    return Math.random();
  }
}

/** Canonical text by RFC 8785 and SHA-256 (port Digester). */
export class Sha256Digester implements Digester {
  readonly canonical = canonicalJson;

  isSame(a: unknown, b: unknown): boolean {
    return a === b || this.canonical(a) === this.canonical(b);
  }

  digest(text: string): string {
    return hash('sha256', text, 'hex');
  }
}

/** One for the process: on Node 20 each storage that was ever entered makes every promise of the process a little slower, for good. */
const calls = new AsyncLocalStorage<ScopedCall | null>();

/** Follows the call through promises, timers and callbacks. */
export class AsyncRunScope implements RunScope {
  enter<T>(call: ScopedCall | null, body: () => T): T {
    return calls.run(call, body);
  }

  current(): ScopedCall | null {
    return calls.getStore() ?? null;
  }
}
