import type { PreparedAppend } from '../journal-rows.js';
import type { DatabaseFailure } from '../database-failure.js';
import type { Dialect } from '../dialect.js';
import type { Answer, Statement } from '../program.js';

export interface DriverConnection {
  /** @throws DatabaseFailure */
  execute(statement: Statement): Promise<Answer>;
  /** BEGIN, COMMIT, SAVEPOINT … @throws DatabaseFailure */
  control(sql: string): Promise<void>;
  /** Gives it back to the pool. */
  release(): void;
  /** Cuts it: what runs on it fails, and the pool makes another. */
  destroy(): void;
}

/**
 * What a database with a pool of connections brings to the store: its connections below TypeORM, and the few statements whose form is its own. Promises:
 * statements are prepared; every failure is a DatabaseFailure; a destroyed connection never goes back to the pool.
 */
export interface PooledDriver {
  /** Names the schema or database of the tables once a connection was checked. */
  readonly dialect: Dialect;
  /** A connection to the primary. @throws DatabaseFailure */
  obtain(): Promise<DriverConnection>;
  /** The host's own connection, for statements inside its transaction. It is not released by us. */
  wrap(connection: unknown): DriverConnection;
  /** Statements that begin a transaction at READ COMMITTED. */
  readonly begin: readonly string[];
  /** The same for a transaction that several runs share; what waits for somebody else in it is to fail soon, where the database can be told so. */
  readonly beginBatch: readonly string[];
  /** Appends one row, waiting for the run's row if somebody holds it. */
  appendOne(append: PreparedAppend): Statement;
  /** Appends those of several rows whose runs nobody holds. They are sorted by run id. @returns the indexes that have landed for certain */
  appendMany(connection: DriverConnection, appends: readonly PreparedAppend[]): Promise<ReadonlySet<number>>;
  /** Bytes of JSON text that fit into each statement beside what else it holds, known once it was checked. */
  readonly maxCommitBytes: number;
  /** Whether the connection is set up so that text survives, and where its tables are. @throws InvalidConfigurationError */
  check(connection: DriverConnection): Promise<void>;
  /** Runs work that changes the schema, alone among all processes; in a transaction where the database has them for DDL. */
  changeSchema<T>(connection: DriverConnection, work: () => Promise<T>): Promise<T>;
  /** Whether an error that host code threw comes from this database. */
  failureOf(error: unknown): DatabaseFailure | undefined;
}
