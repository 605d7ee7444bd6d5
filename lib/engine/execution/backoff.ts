/** Waiting between tries against a store that does not answer: 50 ms doubling to 2 s, with jitter. */
import type { Clock } from '../../contracts/ports/clock.port.js';
import type { IdSource } from '../../contracts/ports/id-source.port.js';

const FIRST_MS = 50;
const LONGEST_MS = 2_000;

export class Backoff {
  private nextMs = FIRST_MS;

  constructor(private readonly ports: { clock: Clock; ids: IdSource }) {}

  wait(): Promise<void> {
    const ms = Math.ceil(this.nextMs * (0.5 + this.ports.ids.random() / 2));
    this.nextMs = Math.min(LONGEST_MS, this.nextMs * 2);
    return new Promise((resolve) => this.ports.clock.after(ms, resolve));
  }
}
