/**
 * Transactions of our own on a database with a pool. They run at READ COMMITTED, are rolled back explicitly whatever ended them, and are repeated with jitter on
 * the database's own conflicts. One whose COMMIT got no answer is looked up before it is repeated, and again after: what was still on its way
 * may land between the two.
 */
import { StoreConflictError } from '../../../errors/store/store-conflict.error.js';
import { StoreUnavailableError } from '../../../errors/store/store-unavailable.error.js';
import { DatabaseFailure, forCaller } from '../database-failure.js';
import { LostRaceError } from '../lost-race.error.js';
import type { Program } from '../program.js';
import type { OwnTransaction } from '../run-database.js';
import { backoff } from './backoff.js';
import type { Connections, Deadline } from './connections.js';
import type { DriverConnection, PooledDriver } from './pooled-driver.js';
import { runProgram } from './run-program.js';

/** What a transaction gave whose COMMIT was sent and not answered. */
export interface Unanswered<T> {
  readonly value: T;
}

export class OwnTransactions {
  constructor(
    private readonly driver: Pick<PooledDriver, 'begin'>,
    private readonly connections: Connections,
  ) {}

  /** A program without a transaction. */
  read<T>(doing: string, program: () => Program<T>, deadline = this.connections.deadline()): Promise<T> {
    return this.repeat(doing, deadline, () =>
      this.connections.use(doing, deadline, (connection) => runProgram(connection, program())),
    );
  }

  /** @param unanswered what an earlier try may have committed */
  write<T>(
    transaction: OwnTransaction<T>,
    deadline = this.connections.deadline(),
    unanswered?: Unanswered<T>,
  ): Promise<T> {
    const { doing, program, hasLanded } = transaction;
    let doubtful = unanswered;
    const didLand = async ({ value }: Unanswered<T>): Promise<boolean> =>
      hasLanded !== undefined && (await this.read(doing, () => hasLanded(value), deadline));
    return this.repeat(doing, deadline, async () => {
      if (doubtful && (await didLand(doubtful))) return doubtful.value;
      const [tried] = await Promise.allSettled([
        this.connections.use(doing, deadline, (connection) =>
          inTransaction(connection, this.driver.begin, () => runProgram(connection, program())),
        ),
      ]);
      // What it ran into may be its own earlier try: some databases hide a new row until it is committed.
      if (doubtful && (await didLand(doubtful))) return doubtful.value;
      if (tried.status === 'rejected') throw tried.reason;
      if ('committed' in tried.value) return tried.value.committed;
      doubtful = tried.value;
      throw new DatabaseFailure('conflict', 'COMMIT_LOST');
    });
  }

  private async repeat<T>(doing: string, deadline: Deadline, once: () => Promise<T>): Promise<T> {
    for (let tries = 0; ; tries += 1) {
      try {
        return await once();
      } catch (error) {
        const mayPass =
          error instanceof LostRaceError ||
          (error instanceof DatabaseFailure && (error.verdict === 'conflict' || error.isConnectionLost));
        if (!mayPass) throw forCaller(error, doing);
        if (!(await backoff(tries, deadline))) throw this.tooLate(doing, error);
      }
    }
  }

  private tooLate(doing: string, error: LostRaceError | DatabaseFailure): Error {
    if (error instanceof LostRaceError) return lostRace(doing);
    return new StoreUnavailableError(
      `The database could not ${doing} within ${this.connections.timeoutMs} ms: ${error.databaseCode}, again and again.`,
      { details: { databaseCode: error.databaseCode } },
    );
  }
}

/**
 * Work between BEGIN and COMMIT, rolled back if it fails. Returns what was committed, or what may have been where the connection was lost under the COMMIT.
 * @param onCommitting called when the COMMIT is sent
 */
export async function inTransaction<T>(
  connection: DriverConnection,
  begin: readonly string[],
  work: () => Promise<T>,
  onCommitting?: (value: T) => void,
): Promise<{ committed: T } | Unanswered<T>> {
  let unanswered: Unanswered<T> | undefined;
  try {
    for (const sql of begin) await connection.control(sql);
    const value = await work();
    unanswered = { value };
    onCommitting?.(value);
    await connection.control('COMMIT');
    return { committed: value };
  } catch (error) {
    if (error instanceof DatabaseFailure && error.isConnectionLost && unanswered) return unanswered;
    // A lock timeout of InnoDB ends the statement only; the locks are held until this (decision 7).
    await connection.control('ROLLBACK').catch(() => connection.destroy());
    throw error;
  }
}

/** Others committed first, each time. */
export function lostRace(doing: string): StoreConflictError {
  return new StoreConflictError(
    `Others committed first each time the store tried to ${doing}. Repeat the transaction.`,
  );
}
