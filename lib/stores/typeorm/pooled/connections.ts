/**
 * Connections of the host's pool, borrowed for one operation with a deadline. When it passes, the caller is answered and the connection is destroyed, never
 * released: a socket that swallows everything would otherwise come back to the pool.
 */
import { StoreUnavailableError } from '../../../errors/store.errors.js';
import type { ConflictCounter } from '../conflict-counter.js';
import type { DriverConnection, PooledDriver } from './pooled-driver.js';

/** By `performance.now()`. */
export type Deadline = number;

export class Connections {
  private readonly inUse = new Set<DriverConnection>();
  private isCut = false;

  constructor(
    private readonly driver: Pick<PooledDriver, 'obtain'>,
    readonly timeoutMs: number,
    private readonly conflicts: ConflictCounter,
  ) {}

  deadline(): Deadline {
    return performance.now() + this.timeoutMs;
  }

  allow(): void {
    this.isCut = false;
  }

  /** Ends what is under way, and refuses what comes after. */
  cut(): void {
    this.isCut = true;
    for (const connection of this.inUse) connection.destroy();
  }

  /** @throws StoreUnavailableError when the deadline passes, and whatever the work throws */
  async use<T>(doing: string, deadline: Deadline, work: (connection: DriverConnection) => Promise<T>): Promise<T> {
    if (this.isCut) throw closed();
    const alarm = new Alarm(doing, deadline);
    try {
      const connection = await alarm.raceFor(this.driver.obtain(), (late) => late.release());
      return await this.work(connection, alarm, work);
    } catch (error) {
      this.conflicts.count(error);
      throw error;
    } finally {
      alarm.stop();
    }
  }

  private async work<T>(
    connection: DriverConnection,
    alarm: Alarm,
    work: (connection: DriverConnection) => Promise<T>,
  ): Promise<T> {
    this.inUse.add(connection);
    try {
      return await alarm.race(work(connection), () => connection.destroy());
    } finally {
      this.inUse.delete(connection);
      connection.release();
    }
  }
}

export function closed(): StoreUnavailableError {
  return new StoreUnavailableError('The store is closed. Open it before use.');
}

/** One timer for all waits of an operation, which come one after the other. */
export class Alarm {
  private onLate: (() => void) | undefined;
  private isLate = false;
  private readonly timer: NodeJS.Timeout;

  /** @param doing what the database is to do, in words */
  constructor(
    private readonly doing: string,
    deadline: Deadline,
  ) {
    this.timer = setTimeout(
      () => {
        this.isLate = true;
        this.onLate?.();
      },
      Math.max(0, deadline - performance.now()),
    );
  }

  /** Settles as the work does, or is rejected when the alarm goes off before; `onLate` is called then. */
  race<T>(work: Promise<T>, onLate: () => void): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.onLate = () => {
        reject(this.late());
        onLate();
      };
      work.then(resolve, reject);
      if (this.isLate) this.onLate();
    });
  }

  /** The same for what is to be given back when it comes after all, and nobody waits for it any more. */
  raceFor<T>(obtained: Promise<T>, giveBack: (late: T) => void): Promise<T> {
    return this.race(obtained, () => void obtained.then(giveBack, () => undefined));
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private late(): StoreUnavailableError {
    return new StoreUnavailableError(
      `The database could not ${this.doing} in time, waiting for a connection of the pool included. Look at the size of the pool, at locks, and at the network.`,
    );
  }
}
