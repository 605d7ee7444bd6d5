/**
 * The parts of a better-sqlite3 connection that are used here. The connection is the host's: it is looked up at every use, because a data source that was
 * closed and opened again has another one.
 */
import type { DataSource } from 'typeorm';
import { StoreUnavailableError } from '../../../errors/store.errors.js';
import type { Row, SqlValue } from '../program.js';

export interface SqliteStatement {
  readonly reader: boolean;
  all(params: readonly SqlValue[]): Row[];
  run(params: readonly SqlValue[]): { changes: number };
  safeIntegers(on: boolean): this;
}

/** `Database` of better-sqlite3 12. */
export interface SqliteHandle {
  readonly open: boolean;
  /** Not in autocommit: a BEGIN or SAVEPOINT is open, whoever made it. */
  readonly inTransaction: boolean;
  prepare(sql: string): SqliteStatement;
  exec(sql: string): this;
}

/** @throws StoreUnavailableError while the data source is not connected */
export function handleOf(dataSource: DataSource): SqliteHandle {
  const { databaseConnection } = dataSource.driver as unknown as { databaseConnection?: SqliteHandle };
  if (!dataSource.isInitialized || !databaseConnection?.open) {
    throw new StoreUnavailableError(
      'The SQLite connection is not open. Initialise the data source before the store, and close it after.',
    );
  }
  return databaseConnection;
}
