/**
 * Connections of the host's pool, borrowed for one operation with a deadline. When it passes, the caller is answered and the connection is destroyed, never
 * released: a socket that swallows everything would otherwise come back to the pool (decision 10).
 */
import { StoreUnavailableError } from '../../../errors/store/store-unavailable.error.js';
import type { ConflictCounter } from '../conflict-counter.js';
import type { DriverConnection, PooledDriver } from './pooled-driver.js';

/** By `performance.now()`. */
export type Deadline = number;

export class Connections {
  constructor(
    private readonly driver: Pick<PooledDriver, 'obtain'>,
    readonly timeoutMs: number,
    private readonly conflicts: ConflictCounter,
  ) {}

  deadline(): Deadline {
    return performance.now() + this.timeoutMs;
  }

  /** @throws StoreUnavailableError when the deadline passes, and whatever the work throws */
  async use<T>(doing: string, deadline: Deadline, work: (connection: DriverConnection) => Promise<T>): Promise<T> {
    const timeoutMs = Math.round(deadline - performance.now());
    const alarm = new Alarm(deadline, () => late(doing, timeoutMs));
    try {
      const obtained = this.driver.obtain();
      const connection = await alarm.race(obtained, () => {
        // It may still come, when nobody waits for it any more.
        obtained.then(
          (late) => late.release(),
          () => undefined,
        );
      });
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
    let isDestroyed = false;
    try {
      return await alarm.race(work(connection), () => {
        isDestroyed = true;
        connection.destroy();
      });
    } finally {
      if (!isDestroyed) connection.release();
    }
  }
}

function late(doing: string, timeoutMs: number): StoreUnavailableError {
  return new StoreUnavailableError(
    `The database did not ${doing} within ${timeoutMs} ms, waiting for a connection of the pool included. Look at the size of the pool, at locks, and at the network.`,
  );
}

/** One timer for all waits of an operation, which come one after the other. */
class Alarm {
  private onLate: (() => void) | undefined;
  private isLate = false;
  private readonly timer: NodeJS.Timeout;

  constructor(
    deadline: Deadline,
    private readonly makeError: () => Error,
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
        reject(this.makeError());
        onLate();
      };
      work.then(resolve, reject);
      if (this.isLate) this.onLate();
    });
  }

  stop(): void {
    clearTimeout(this.timer);
  }
}
