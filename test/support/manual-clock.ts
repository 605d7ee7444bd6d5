// A clock that only moves when it is told to. `advance` fires the timers that come due, in order, and lets the work each of them began come to rest.
import type { Clock } from '../../lib/contracts/ports/system.port.js';

interface Timer {
  at: number;
  order: number;
  callback: () => void;
}

export class ManualClock implements Clock {
  private readonly timers = new Set<Timer>();
  private order = 0;
  private setBy = 0;

  constructor(private time = 1_700_000_000_000) {}

  now(): number {
    return this.time + this.setBy;
  }

  elapsed(): number {
    return this.time;
  }

  /** Somebody sets the wall clock; no time passes. */
  set(byMs: number): void {
    this.setBy += byMs;
  }

  after(ms: number, callback: () => void): () => void {
    const timer: Timer = { at: this.time + (ms > 0 ? ms : 0), order: this.order++, callback };
    this.timers.add(timer);
    return () => void this.timers.delete(timer);
  }

  /** Timers that were set and neither came nor were cancelled. */
  get pending(): number {
    return this.timers.size;
  }

  /** Milliseconds until the next timer; null without one. */
  get nextIn(): number | null {
    const next = this.next(Number.POSITIVE_INFINITY);
    return next ? next.at - this.time : null;
  }

  async advance(ms: number): Promise<void> {
    const until = this.time + ms;
    await rest();
    for (let timer = this.next(until); timer; timer = this.next(until)) {
      this.timers.delete(timer);
      this.time = Math.max(this.time, timer.at);
      timer.callback();
      await rest();
    }
    this.time = Math.max(this.time, until);
  }

  /** The time passes, but nobody's timers run: a process that stood still. What is overdue comes with the next `advance`. */
  jump(ms: number): void {
    this.time += ms;
  }

  /** The machine is suspended for so long: its timers go on where they were. */
  suspend(ms: number): void {
    this.time += ms;
    for (const timer of this.timers) timer.at += ms;
  }

  private next(until: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.timers) {
      if (timer.at <= until && (!first || timer.at < first.at || (timer.at === first.at && timer.order < first.order)))
        first = timer;
    }
    return first;
  }
}

/** Lets everything that can go on without a timer or I/O come to rest. */
export async function rest(): Promise<void> {
  for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve));
}
