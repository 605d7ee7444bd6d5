import { StoreConflictError, StoreUnavailableError } from '../../../errors/store.errors.js';
import { type ConflictCounter, DatabaseFailure, forCaller, LostRaceError } from '../database-failure.js';
import type { DriverConnection, PooledDriver } from './pooled-driver.js';

/** By `performance.now()`. */
export type Deadline = number;

/**
 * Connections of the host's pool, borrowed for one operation with a deadline. When it passes, the caller is answered
 * and the connection is destroyed, never released: a socket that swallows everything would otherwise come back to the
 * pool.
 */
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

const FIRST_MS = 2;
const LAST_MS = 100;

/** Connections that one operation gives up because the tables are out of their reach: as many as the pools of most hosts hold. */
const MAX_UNFIT = 10;

/**
 * Repeats an operation on what may pass: conflicts and lost connections until the deadline, with jitter, so that two that met once do not meet again; and at
 * once on another connection where the tables are out of reach for one.
 * @throws store errors, and what else the operation throws
 */
export async function repeat<T>(
  doing: string,
  { timeoutMs }: Pick<Connections, 'timeoutMs'>,
  deadline: Deadline,
  once: () => Promise<T>,
): Promise<T> {
  let unfit = 0;
  for (let tries = 0; ; tries += 1) {
    try {
      return await once();
    } catch (error) {
      const failure = error instanceof DatabaseFailure ? error : undefined;
      if (failure?.verdict === 'out_of_reach' && (unfit += 1) <= MAX_UNFIT) continue;
      const mayPass = error instanceof LostRaceError || failure?.verdict === 'conflict' || failure?.isConnectionLost;
      if (!mayPass) throw forCaller(error, doing);
      if (await backoff(tries, deadline)) continue;
      if (!failure) throw lostRace(doing);
      throw new StoreUnavailableError(
        `The database could not ${doing} within ${timeoutMs} ms: ${failure.databaseCode}, again and again.`,
        { details: { databaseCode: failure.databaseCode } },
      );
    }
  }
}

/** Others committed first, each time. */
export function lostRace(doing: string): StoreConflictError {
  return new StoreConflictError(
    `Others committed first each time the store tried to ${doing}. Repeat the transaction.`,
  );
}

/**
 * @param tries how often it was tried before, from 0
 * @param deadline by `performance.now()`
 * @returns false, at once, when the deadline would pass meanwhile
 */
async function backoff(tries: number, deadline: number): Promise<boolean> {
  const waitMs = Math.min(FIRST_MS * 2 ** tries, LAST_MS) * (0.5 + Math.random());
  if (performance.now() + waitMs >= deadline) return false;
  await new Promise((next) => setTimeout(next, waitMs));
  return true;
}
