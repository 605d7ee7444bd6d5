import type { DataSource, DataSourceOptions } from 'typeorm';
import { InvalidConfigurationError } from '../../../errors/configuration.errors.js';
import { StoreLockedError } from '../../../errors/store.errors.js';
import type { DatabaseFailure } from '../database-failure.js';
import { LARGEST_TEXT_BYTES, perDialect, schemaOf } from '../dialect.js';
import { APPENDED, JOURNAL_COLUMNS, encodeAppends, type PreparedAppend } from '../journal-rows.js';
import type { DriverConnection, PooledDriver } from '../pooled/pooled-driver.js';
import type { Row, Statement } from '../program.js';
import { isMysqlError, MysqlConnection, mysqlFailure, type RawMysqlConnection } from './mysql-connection.js';
import { mysqlDialect, type MysqlDialect } from './mysql.dialect.js';

/** MySQL and MariaDB behind the store: connections of TypeORM's pool, and the statements that append. */
const SCHEMA_LOCK_WAIT_S = 60;
/** Of a statement: what it holds beside the entries. */
const BESIDE_ENTRIES_BYTES = 64 * 1024;

const statements = perDialect(({ tables, now, shared, batchSql, isMariaDb }: MysqlDialect) => {
  const insert = `INSERT INTO ${tables.journal} (${JOURNAL_COLUMNS.join(', ')})`;
  // MariaDB refuses FOR SHARE, MySQL refuses LOCK IN SHARE MODE SKIP LOCKED.
  const sharedSkipLocked = isMariaDb ? 'LOCK IN SHARE MODE SKIP LOCKED' : 'FOR SHARE SKIP LOCKED';
  return {
    appendOne: `${insert} SELECT ?, ?, ?, ?, ${now}, ?, ? FROM ${tables.runs} WHERE id = ? AND attempt = ? AND status = 'running'${shared}`,
    // Locks in the order of the batch, which is sorted by run id: unsorted ones deadlock.
    appendMany:
      `${insert} SELECT v.p1, v.p2, v.p3, v.p4, ${now}, v.p5, v.p6 FROM ${batchSql.given(APPENDED)} ` +
      `${batchSql.joined(tables.runs)} ON r.id = v.p1 AND r.attempt = v.p4 AND r.status = 'running' ${sharedSkipLocked}`,
  };
});

export class MysqlDriver implements PooledDriver {
  dialect: MysqlDialect;
  readonly begin = ['SET TRANSACTION ISOLATION LEVEL READ COMMITTED', 'START TRANSACTION'];
  readonly beginBatch = this.begin;
  maxCommitBytes = LARGEST_TEXT_BYTES;

  constructor(private readonly dataSource: DataSource) {
    this.dialect = this.dialectOn(schemaOf(dataSource));
  }

  async obtain(): Promise<DriverConnection> {
    const { driver } = this.dataSource as unknown as {
      driver: { obtainMasterConnection(): Promise<RawMysqlConnection> };
    };
    try {
      return new MysqlConnection(await driver.obtainMasterConnection(), true);
    } catch (error) {
      throw mysqlFailure(error);
    }
  }

  wrap(connection: unknown): DriverConnection {
    return new MysqlConnection(connection as RawMysqlConnection);
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
    const { changes } = await connection.execute({
      sql: statements(this.dialect).appendMany,
      params: [encodeAppends(appends)],
      writes: true,
      ignoreTaken: true,
    });
    // A short count does not say which ones landed; asking each one alone does.
    return new Set(changes === appends.length ? appends.keys() : []);
  }

  async check(connection: DriverConnection): Promise<void> {
    const { rows } = await connection.execute({
      sql: `SELECT VERSION() AS version, DATABASE() AS current, ${CHECKED}`,
      params: [EMOJI],
      writes: false,
    });
    const database = schemaOf(this.dataSource) ?? rows[0]?.['current'];
    if (typeof database !== 'string') {
      throw new InvalidConfigurationError([
        'The data source names no database for the agent run tables. Set `database` in its options.',
      ]);
    }
    this.dialect = this.dialectOn(database);
    // The server decides, not the name of the driver: hosts use `mysql` for both.
    this.dialect.isMariaDb = /mariadb/i.test(String(rows[0]?.['version']));
    this.maxCommitBytes = Math.min(Number(rows[0]?.['max_packet']) - BESIDE_ENTRIES_BYTES, LARGEST_TEXT_BYTES);
    // Shown, not selected: a variable that a server no longer has is not in the answer, and no error.
    const shown = await connection.execute({ sql: SHOWN, params: [], writes: false });
    const problems = mysqlProblems({ ...rows[0], ...variablesOf(shown.rows) }, this.dataSource.options);
    if (problems.length > 0) throw new InvalidConfigurationError(problems);
  }

  /** DDL commits by itself here, so the lock is a named one, held by this connection. */
  async changeSchema<T>(connection: DriverConnection, work: () => Promise<T>): Promise<T> {
    const lock = `CONCAT('agent-runs:', ${this.dialect.database})`;
    const { rows } = await connection.execute({
      sql: `SELECT GET_LOCK(${lock}, ?) AS locked`,
      params: [SCHEMA_LOCK_WAIT_S],
      writes: false,
    });
    if (Number(rows[0]?.['locked']) !== 1) {
      throw new StoreLockedError(
        `Another process has been changing the agent run tables of this database for ${SCHEMA_LOCK_WAIT_S} s. Look at who holds the lock 'agent-runs:<database>'.`,
      );
    }
    try {
      return await work();
    } finally {
      // Released with the connection, where that is gone.
      await connection.control(`DO RELEASE_LOCK(${lock})`).catch(() => connection.destroy());
    }
  }

  failureOf(error: unknown): DatabaseFailure | undefined {
    return isMysqlError(error) ? mysqlFailure(error) : undefined;
  }

  private dialectOn(database: string | undefined): MysqlDialect {
    return mysqlDialect(this.dataSource.options.type === 'mariadb' ? 'mariadb' : 'mysql', database);
  }
}

/** Columns that are judged; takes {@link EMOJI}. */
export const CHECKED =
  'HEX(?) AS hex, @@max_allowed_packet AS max_packet, @@autocommit AS autocommit, @@sql_mode AS sql_mode';
export const EMOJI = '\u{1F600}';

/** Variables that are judged. */
export const SHOWN = `SHOW VARIABLES WHERE Variable_name IN ('log_bin', 'binlog_format')`;

const LEAST_PACKET_BYTES = 1024 * 1024;

/** The answer to {@link SHOWN} as one row. */
export function variablesOf(rows: readonly Row[]): Row {
  return Object.fromEntries<unknown>(rows.map((row) => [String(row['Variable_name']), row['Value']]));
}

/**
 * What about a server, or about a host's connection to it, would break runs later, told when the store opens.
 *
 * @param found the columns of {@link CHECKED} and the variables of {@link SHOWN}
 */
export function mysqlProblems(found: Row, options: DataSourceOptions): string[] {
  const { hex, max_packet, autocommit, sql_mode, log_bin, binlog_format } = found;
  const problems: string[] = [];
  if (Number(max_packet) < LEAST_PACKET_BYTES) {
    problems.push(
      `max_allowed_packet of the database server is ${String(max_packet)} bytes, which is too little for the steps of a run. Set it to ${LEAST_PACKET_BYTES} or more.`,
    );
  }
  if (hex !== 'F09F9880') {
    problems.push(
      "The data source's connection does not carry all of Unicode: an emoji sent to the database did not arrive. Set `charset: 'utf8mb4'` in its options.",
    );
  }
  if (Number(autocommit) !== 1) {
    problems.push(
      "The data source's connection has `autocommit` off: what is written outside of a transaction would never be committed. Leave it on for this user.",
    );
  }
  if (/\bORACLE\b/.test(String(sql_mode))) {
    problems.push(
      "The data source's connection has the `sql_mode` ORACLE, in which the statements of this package mean something else. Leave it out for this user.",
    );
  }
  if (log_bin === 'ON' && binlog_format === 'STATEMENT') {
    problems.push(
      'The database server writes its binary log with `binlog_format` STATEMENT, with which InnoDB refuses whatever is written at READ COMMITTED. Set it to ROW or MIXED.',
    );
  }
  if (forgetsServers(options)) {
    problems.push(
      'The data source has `replication` without `restoreNodeTimeout`: after five connections that could not be made, its driver gives the server up for good, and this process never gets a connection again. Set `restoreNodeTimeout: 1000` (ms) in `replication`.',
    );
  }
  return problems;
}

/** mysql2's cluster of pools, which tries five times in a row by itself: one try during an outage is enough. */
function forgetsServers(options: DataSourceOptions): boolean {
  const { replication } = options as { replication?: { restoreNodeTimeout?: number } };
  return replication !== undefined && !((replication.restoreNodeTimeout ?? 0) > 0);
}
