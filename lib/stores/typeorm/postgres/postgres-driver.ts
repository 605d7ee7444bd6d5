import type { DataSource } from 'typeorm';
import { InvalidConfigurationError } from '../../../errors/configuration.errors.js';
import { APPENDED, JOURNAL_COLUMNS, encodeAppends, type PreparedAppend } from '../journal-rows.js';
import type { DatabaseFailure } from '../database-failure.js';
import { LARGEST_TEXT_BYTES, perDialect, schemaOf } from '../dialect.js';
import type { DriverConnection, PooledDriver } from '../pooled/pooled-driver.js';
import type { Row, Statement } from '../program.js';
import {
  isPostgresError,
  PostgresConnection,
  postgresFailure,
  preparePool,
  type RawPostgresClient,
  type RawPostgresPool,
} from './postgres-connection.js';
import { postgresDialect, type PostgresDialect } from './postgres.dialect.js';

/** Key of the advisory lock: any number that nobody else uses. */
const SCHEMA_LOCK = 7_205_719_482_013;
/** Encodings of a database that give all of Unicode back; SQL_ASCII keeps the bytes as they come. */
const KEEPS_ALL: ReadonlySet<string> = new Set(['UTF8', 'SQL_ASCII']);
/** How long a shared transaction waits for a key that somebody is just inserting. */
const SHARED_WAIT_MS = 100;

const statements = perDialect(({ tables, now, batchSql }: PostgresDialect) => {
  const insert = `INSERT INTO ${tables.journal} (${JOURNAL_COLUMNS.join(', ')})`;
  // Not `= 'running'` alone: with few of them the planner takes the index over statuses, and reads all that were running since the last vacuum.
  const isRunning = `(r.status = 'running') IS TRUE`;
  // A conflict must not be an error: inside a transaction it would end it.
  const ignoreTaken = 'ON CONFLICT (run_id, first_sequence) DO NOTHING';
  return {
    appendOne:
      `${insert} SELECT CAST(? AS text), CAST(? AS integer), CAST(? AS integer), CAST(? AS integer), ${now}, CAST(? AS text), CAST(? AS text) ` +
      `FROM ${tables.runs} r WHERE r.id = ? AND r.attempt = ? AND ${isRunning} FOR SHARE OF r ${ignoreTaken}`,
    appendMany:
      `${insert} SELECT v.p1, v.p2, v.p3, v.p4, ${now}, v.p5, v.p6 FROM ${batchSql.given(APPENDED)} ` +
      `JOIN ${tables.runs} r ON r.id = v.p1 AND r.attempt = v.p4 AND ${isRunning} FOR SHARE OF r SKIP LOCKED ${ignoreTaken} RETURNING run_id`,
  };
});

/** PostgreSQL behind the store: connections of TypeORM's pool, and the statements that append. */
export class PostgresDriver implements PooledDriver {
  dialect: PostgresDialect;
  readonly begin = ['BEGIN ISOLATION LEVEL READ COMMITTED'];
  readonly beginBatch = [`${this.begin.join()}; SET LOCAL lock_timeout = ${SHARED_WAIT_MS}`];
  readonly maxCommitBytes = LARGEST_TEXT_BYTES;

  /** @param connectTimeoutMs for a connection that is made, where the host has set no limit */
  constructor(
    private readonly dataSource: DataSource,
    private readonly connectTimeoutMs: number,
  ) {
    this.dialect = postgresDialect(schemaOf(dataSource));
  }

  async obtain(): Promise<PostgresConnection> {
    const { driver } = this.dataSource as unknown as {
      driver: {
        master?: RawPostgresPool;
        obtainMasterConnection(): Promise<[RawPostgresClient, (error?: Error) => void]>;
      };
    };
    try {
      if (driver.master) preparePool(driver.master, this.connectTimeoutMs);
      const [client, give] = await driver.obtainMasterConnection();
      return new PostgresConnection(client, this.dialect.bind, give);
    } catch (error) {
      throw postgresFailure(error);
    }
  }

  wrap(connection: unknown): PostgresConnection {
    return new PostgresConnection(connection as RawPostgresClient, this.dialect.bind);
  }

  appendOne({ runId, firstSequence, count, attempt, totals, entries }: PreparedAppend): Statement {
    return {
      sql: statements(this.dialect).appendOne,
      params: [runId, firstSequence, count, attempt, totals, entries, runId, attempt],
      writes: true,
      ignoreTaken: true,
    };
  }

  async appendMany(connection: DriverConnection, appends: readonly PreparedAppend[]): Promise<ReadonlySet<number>> {
    // With RETURNING it answers like a query.
    const { rows } = await connection.execute({
      sql: statements(this.dialect).appendMany,
      params: [encodeAppends(appends)],
      writes: false,
    });
    const landed = new Set(rows.map((row) => row['run_id']));
    return new Set([...appends.keys()].filter((index) => landed.has(appends[index]?.runId)));
  }

  async check(connection: DriverConnection): Promise<void> {
    const { rows } = await connection.execute({
      sql: `SELECT current_setting('server_encoding') AS encoding, CAST(current_schema() AS text) AS current, (SELECT CAST(nspname AS text) FROM pg_catalog.pg_namespace WHERE nspname = ?) AS named`,
      params: [schemaOf(this.dataSource) ?? ''],
      writes: false,
    });
    const encoding = String(rows[0]?.['encoding']);
    if (!KEEPS_ALL.has(encoding)) {
      throw new InvalidConfigurationError([
        `The database has the encoding ${encoding}, which cannot hold all of Unicode: a model's reply with an emoji could not be stored. Make one with ENCODING 'UTF8' for the data source of the runs.`,
      ]);
    }
    this.dialect = postgresDialect(this.existingSchema(rows[0] as Row));
  }

  /** @throws InvalidConfigurationError */
  private existingSchema({ current, named }: Row): string {
    const wanted = schemaOf(this.dataSource);
    const found = wanted === undefined ? current : named;
    if (typeof found === 'string') return found;
    throw new InvalidConfigurationError([
      wanted === undefined
        ? "No schema of the connection's search_path exists, so there is none for the agent run tables. Create one, or name one that exists as `schema` of the data source."
        : `The schema "${wanted}" of the data source does not exist in its database, so there is no place for the agent run tables. Create it with CREATE SCHEMA "${wanted}", or name another one as \`schema\` of the data source.`,
    ]);
  }

  /** DDL is part of a transaction here, and so is the lock. */
  async changeSchema<T>(connection: DriverConnection, work: () => Promise<T>): Promise<T> {
    await connection.control('BEGIN ISOLATION LEVEL READ COMMITTED');
    try {
      await connection.control(`SELECT pg_advisory_xact_lock(${SCHEMA_LOCK})`);
      const value = await work();
      await connection.control('COMMIT');
      return value;
    } catch (error) {
      await connection.control('ROLLBACK').catch(() => connection.destroy());
      throw error;
    }
  }

  failureOf(error: unknown): DatabaseFailure | undefined {
    return isPostgresError(error) ? postgresFailure(error) : undefined;
  }
}
