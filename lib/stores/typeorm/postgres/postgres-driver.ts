/** PostgreSQL behind the store: connections of TypeORM's pool, and the statements that append. */
import type { DataSource } from 'typeorm';
import type { PreparedAppend } from '../append-entries.js';
import type { DatabaseFailure } from '../database-failure.js';
import type { Dialect } from '../dialect.js';
import { JOURNAL_COLUMNS } from '../journal-row.js';
import type { DriverConnection, PooledDriver } from '../pooled/pooled-driver.js';
import type { Statement } from '../program.js';
import { PostgresConnection, type RawPostgresClient } from './postgres-connection.js';
import { isPostgresError, postgresFailure } from './postgres-failure.js';
import { postgresDialect } from './postgres.dialect.js';

/** Key of the advisory lock: any number that nobody else uses. */
const SCHEMA_LOCK = 7_205_719_482_013;

export class PostgresDriver implements PooledDriver {
  readonly dialect: Dialect;
  readonly begin = ['BEGIN ISOLATION LEVEL READ COMMITTED'];
  private readonly appendOneSql: string;
  private readonly appendManySql: string;

  constructor(private readonly dataSource: DataSource) {
    this.dialect = postgresDialect((dataSource.options as { schema?: string }).schema);
    const { tables, now } = this.dialect;
    const insert = `INSERT INTO ${tables.journal} (${JOURNAL_COLUMNS.join(', ')})`;
    // A conflict must not be an error: inside a transaction it would end it.
    this.appendOneSql =
      `${insert} SELECT CAST(? AS text), CAST(? AS integer), CAST(? AS integer), CAST(? AS integer), ${now}, CAST(? AS text), CAST(? AS text) ` +
      `FROM ${tables.runs} r WHERE r.id = ? AND r.attempt = ? AND r.status = 'running' FOR SHARE OF r ON CONFLICT (run_id, first_sequence) DO NOTHING`;
    this.appendManySql =
      `${insert} SELECT v.run_id, v.first_sequence, v.entry_count, v.attempt, ${now}, v.totals, v.entries ` +
      `FROM unnest($1::text[], $2::integer[], $3::integer[], $4::integer[], $5::text[], $6::text[]) AS v (run_id, first_sequence, entry_count, attempt, totals, entries) ` +
      `JOIN ${tables.runs} r ON r.id = v.run_id AND r.attempt = v.attempt AND r.status = 'running' FOR SHARE OF r SKIP LOCKED ` +
      `ON CONFLICT (run_id, first_sequence) DO NOTHING RETURNING run_id`;
  }

  async obtain(): Promise<PostgresConnection> {
    const { driver } = this.dataSource as unknown as {
      driver: { obtainMasterConnection(): Promise<[RawPostgresClient, (error?: Error) => void]> };
    };
    try {
      const [client, give] = await driver.obtainMasterConnection();
      return new PostgresConnection(client, this.dialect.placed, give);
    } catch (error) {
      throw postgresFailure(error);
    }
  }

  wrap(connection: unknown): PostgresConnection {
    return new PostgresConnection(connection as RawPostgresClient, this.dialect.placed);
  }

  appendOne({ runId, firstSequence, count, attempt, totals, entries }: PreparedAppend): Statement {
    return {
      sql: this.appendOneSql,
      params: [runId, firstSequence, count, attempt, totals, entries, runId, attempt],
      writes: true,
      orLeave: true,
    };
  }

  async appendMany(connection: DriverConnection, appends: readonly PreparedAppend[]): Promise<ReadonlySet<number>> {
    const rows = await (connection as PostgresConnection).rowsOf(this.appendManySql, [
      appends.map(({ runId }) => runId),
      appends.map(({ firstSequence }) => firstSequence),
      appends.map(({ count }) => count),
      appends.map(({ attempt }) => attempt),
      appends.map(({ totals }) => totals),
      appends.map(({ entries }) => entries),
    ]);
    const landed = new Set(rows.map((row) => row['run_id']));
    return new Set([...appends.keys()].filter((index) => landed.has(appends[index]?.runId)));
  }

  check(): Promise<void> {
    // The driver and the server agree on UTF-8, or the connection fails by itself.
    return Promise.resolve();
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
