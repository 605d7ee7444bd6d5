// A process of the simulated world: its own clocks, its own chance, and every call it makes to the outside goes through here, where it may be killed or
// stopped. A dead process is one to which nothing is delivered any more; a stopped one is given everything later.
import type { Clock, IdSource } from '../../lib/contracts/ports/system.port.js';
import type { World } from './world.js';

/** Where epoch time stands when a history begins. */
export const EPOCH = 1_700_000_000_000;

export type Port = 'append' | 'transition' | 'create' | 'read' | 'heartbeat' | 'transaction' | 'model' | 'tool';

/** `killed` and `stopped`: before the call is sent. The others are about its way. */
export type CallFault =
  'killed' | 'killed after' | 'stopped' | 'stopped after' | 'lost' | 'answer lost' | 'late' | 'conflict';

export interface FaultAt {
  port: Port | 'any';
  /** Which call of that port, counted over all processes. */
  nth: number;
  fault: CallFault;
  /** How long it is stopped or late. */
  ms: number;
}

/** Which call meets which fault. */
export class FaultTable {
  private readonly counts = new Map<string, number>();
  private readonly faults = new Map<string, FaultAt>();
  isOver = false;

  constructor(faults: readonly FaultAt[]) {
    for (const fault of faults) this.faults.set(`${fault.port}#${fault.nth}`, fault);
  }

  of(port: Port): FaultAt | undefined {
    const ofPort = this.count(port);
    const ofAny = this.count('any');
    return this.isOver ? undefined : (this.faults.get(ofPort) ?? this.faults.get(ofAny));
  }

  private count(port: string): string {
    const nth = (this.counts.get(port) ?? 0) + 1;
    this.counts.set(port, nth);
    return `${port}#${nth}`;
  }
}

const NEVER = new Promise<never>(() => undefined);

export class SimProcess implements Clock, IdSource {
  state: 'up' | 'stopped' | 'dead' = 'up';
  /** Called when it dies: its connections are closed. */
  onDeath: () => void = () => undefined;
  private readonly bornAt: number;
  private readonly kept: (() => void)[] = [];
  private ids = 0;
  private timers = 0;
  private setBy = 0;

  /** @param rate of its clocks, against the world's */
  constructor(
    readonly world: World,
    readonly name: string,
    private readonly faults: FaultTable,
    private readonly rate = 1,
    private readonly offset = 0,
  ) {
    this.bornAt = world.time;
  }

  // ---- clock and chance ----

  now(): number {
    return EPOCH + Math.floor(this.world.time * this.rate) + this.offset + this.setBy;
  }

  elapsed(): number {
    return (this.world.time - this.bornAt) * this.rate;
  }

  after(ms: number, callback: () => void): () => void {
    let isSet = true;
    this.timers += 1;
    const end = (): void => {
      if (isSet) this.timers -= 1;
      isSet = false;
    };
    this.later(Math.ceil(Math.max(0, ms) / this.rate), () => {
      if (!isSet) return;
      end();
      callback();
    });
    return end;
  }

  /** Somebody sets its wall clock. */
  setClock(byMs: number): void {
    this.world.note(`${this.name}: its wall clock is set by ${byMs} ms`);
    this.setBy += byMs;
  }

  get pendingTimers(): number {
    return this.timers;
  }

  id(): string {
    this.ids += 1;
    return `${this.world.time.toString(36).padStart(6, '0')}-${this.name}-${this.ids}`;
  }

  random(): number {
    return this.world.random.next();
  }

  // ---- life ----

  kill(): void {
    if (this.state === 'dead') return;
    this.world.note(`${this.name}: killed`);
    this.state = 'dead';
    this.kept.length = 0;
    this.onDeath();
  }

  stop(ms: number): void {
    if (this.state !== 'up') return;
    this.world.note(`${this.name}: stopped for ${ms} ms`);
    this.state = 'stopped';
    this.world.after(ms, () => this.goOn());
  }

  goOn(): void {
    if (this.state !== 'stopped') return;
    this.world.note(`${this.name}: goes on`);
    this.state = 'up';
    // In order, and each with its promises at rest before the next: as one turn of the event loop after the other.
    for (const happen of this.kept.splice(0)) this.later(0, happen);
  }

  /** Something comes to this process: now, when it goes on, or never. */
  later(ms: number, happen: () => void): void {
    this.world.at(this.world.time + ms, true, () => {
      if (this.state === 'dead') return;
      if (this.state === 'stopped') this.kept.push(happen);
      else happen();
    });
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.later(ms, resolve));
  }

  // ---- calls ----

  /**
   * A call leaves the process. Resolves at once with the fault it meets on its way; later when the process is stopped before it; never when the process is
   * dead or dies here.
   */
  async call(port: Port, what: string): Promise<FaultAt | undefined> {
    if (this.state === 'dead') return NEVER;
    const fault = this.faults.of(port);
    if (!fault) return undefined;
    this.world.note(`${this.name}: ${what} meets: ${fault.fault}`);
    if (fault.fault === 'killed') {
      this.kill();
      return NEVER;
    }
    if (fault.fault === 'stopped') {
      this.stop(fault.ms);
      await this.sleep(0);
      return undefined;
    }
    return fault;
  }
}
