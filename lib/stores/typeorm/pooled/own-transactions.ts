/**
 * Transactions of our own on a database with a pool. They run at READ COMMITTED, are rolled back explicitly whatever ended them, and are repeated with jitter on
 * the database's own conflicts. One whose COMMIT got no answer is looked up before it is repeated, and again after: what was still on its way
 * may land between the two.
 */
import { DatabaseFailure } from '../database-failure.js';
import type { Program } from '../program.js';
import type { OwnTransaction } from '../run-database.js';
import { type Connections, repeat, runProgram } from './connections.js';
import type { DriverConnection, PooledDriver } from './pooled-driver.js';

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
    return repeat(doing, this.connections, deadline, () =>
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
    return repeat(doing, this.connections, deadline, async () => {
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
