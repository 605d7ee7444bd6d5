// One thread, one virtual clock, one seed. Whatever is to happen stands in a queue by time; one thing happens at a time, and every promise that it settles
// has come to rest before the next one.
import { hash } from 'node:crypto';

const immediately = setImmediate;

/** How many turns are given to the event loop at once: each has its microtasks drained, and asking for one at a time costs a system call each. */
const TURNS = 64;

/** Chance from a seed (sfc32). The same seed gives the same numbers on every platform. */
export class Random {
  private a: number;
  private b: number;
  private c: number;
  private d = 1;

  constructor(seed: string) {
    this.a = hashOf(`${seed}/a`);
    this.b = hashOf(`${seed}/b`);
    this.c = hashOf(`${seed}/c`);
    for (let i = 0; i < 12; i++) this.next();
  }

  /** Uniform in [0, 1). */
  next(): number {
    const t = (((this.a + this.b) | 0) + this.d) | 0;
    this.d = (this.d + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = (this.c << 21) | (this.c >>> 11);
    this.c = (this.c + t) | 0;
    return (t >>> 0) / 4_294_967_296;
  }

  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.next() * items.length)] as T;
  }
}

/** A 32-bit hash of a text (FNV-1a with a final mix): chance that depends on what is asked and not on when. */
export function hashOf(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}

/** What an invariant found. The first one ends the history. */
export class Violation extends Error {
  constructor(
    readonly id: string,
    problem: string,
  ) {
    super(`${id}: ${problem}`);
  }
}

interface Happening {
  at: number;
  order: number;
  /** Code of a process runs in it, so that promises may have to settle. */
  settles: boolean;
  happen: () => void;
}

export class World {
  /** Ms since the history began. */
  time = 0;
  readonly timeline: string[] = [];
  readonly random: Random;
  violation: Violation | null = null;
  private readonly queue: Happening[] = [];
  private order = 0;

  constructor(readonly seed: string) {
    this.random = new Random(seed);
  }

  /** Chance bound to a name instead of a moment: a history with one fault less asks its model the same. */
  chanceOf(name: string): number {
    return hashOf(`${this.seed}/${name}`) / 4_294_967_296;
  }

  at(time: number, settles: boolean, happen: () => void): void {
    const happening = { at: Math.max(this.time, time), order: this.order++, settles, happen };
    const { queue } = this;
    let place = queue.length;
    queue.push(happening);
    while (place > 0) {
      const above = (place - 1) >> 1;
      if (!isBefore(happening, queue[above] as Happening)) break;
      queue[place] = queue[above] as Happening;
      place = above;
    }
    queue[place] = happening;
  }

  /** Something happens to the whole world, after so many ms. */
  after(ms: number, happen: () => void): void {
    this.at(this.time + ms, true, happen);
  }

  note(line: string): void {
    this.timeline.push(`${this.time} ${line}`);
  }

  /** The first violation counts: what follows it may follow from it. */
  violate(id: string, problem: string): void {
    if (this.violation) return;
    this.violation = new Violation(id, problem);
    this.note(`VIOLATION ${this.violation.message}`);
  }

  require(holds: boolean, id: string, problem: string): void {
    if (!holds) this.violate(id, problem);
  }

  /** Lets things happen until it is over, or nothing is left, or an invariant is violated. */
  run(isOver: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      let isDone = false;
      let left = 0;
      const turn = (): void => {
        left -= 1;
        if (isDone) return;
        try {
          if (!this.happenNext(isOver)) {
            isDone = true;
            return resolve();
          }
        } catch (error) {
          isDone = true;
          return reject(error);
        }
        if (left === 0) ask();
      };
      const ask = (): void => {
        left = TURNS;
        for (let i = 0; i < TURNS; i++) immediately(turn);
      };
      ask();
    });
  }

  /** Of all that happened, in order: equal for equal seeds, or chance came in from elsewhere. */
  digest(): string {
    return hash('sha256', this.timeline.join('\n'), 'hex');
  }

  private happenNext(isOver: () => boolean): boolean {
    for (;;) {
      if (this.violation || isOver()) return false;
      const next = this.take();
      if (!next) return false;
      this.time = next.at;
      next.happen();
      if (next.settles) return true;
    }
  }

  private take(): Happening | undefined {
    const { queue } = this;
    const first = queue[0];
    const last = queue.pop();
    if (!first || !last || queue.length === 0) return first;
    let place = 0;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= queue.length) break;
      if (below + 1 < queue.length && isBefore(queue[below + 1] as Happening, queue[below] as Happening)) below += 1;
      if (!isBefore(queue[below] as Happening, last)) break;
      queue[place] = queue[below] as Happening;
      place = below;
    }
    queue[place] = last;
    return first;
  }
}

function isBefore(a: Happening, b: Happening): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
