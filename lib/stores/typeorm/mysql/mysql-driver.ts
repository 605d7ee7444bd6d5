/** MySQL and MariaDB behind the store: connections of TypeORM's pool, and the statements that append. */
import type { DataSource } from 'typeorm';
import { InvalidConfigurationError } from '../../../errors/configuration.errors.js';
import { StoreLockedError } from '../../../errors/store.errors.js';
import { APPENDED, packedAppends, type PreparedAppend } from '../append-entries.js';
import type { DatabaseFailure } from '../database-failure.js';
import { LARGEST_TEXT_BYTES, perDialect } from '../dialect.js';
import { JOURNAL_COLUMNS } from '../journal-row.js';
import type { DriverConnection, PooledDriver } from '../pooled/pooled-driver.js';
import type { Statement } from '../program.js';
import { schemaOf } from '../schema-of.js';
import { MysqlConnection, type RawMysqlConnection } from './mysql-connection.js';
import { isMysqlError, mysqlFailure } from './mysql-failure.js';
import { CHECKED, EMOJI, mysqlProblems, SHOWN, variablesOf } from './mysql-problems.js';
import { mysqlDialect, type MysqlDialect } from './mysql.dialect.js';

const SCHEMA_LOCK_WAIT_S = 60;
/** Of a statement: what it holds beside the entries. */
const BESIDE_ENTRIES_BYTES = 64 * 1024;

const statements = perDialect(({ tables, now, shared, sharing, isMariaDb }: MysqlDialect) => {
  const insert = `INSERT INTO ${tables.journal} (${JOURNAL_COLUMNS.join(', ')})`;
  // MariaDB refuses FOR SHARE, MySQL refuses LOCK IN SHARE MODE SKIP LOCKED.
  const sharedSkipLocked = isMariaDb ? 'LOCK IN SHARE MODE SKIP LOCKED' : 'FOR SHARE SKIP LOCKED';
  return {
    appendOne: `${insert} SELECT ?, ?, ?, ?, ${now}, ?, ? FROM ${tables.runs} WHERE id = ? AND attempt = ? AND status = 'running'${shared}`,
    // Locks in the order of the batch, which is sorted by run id: unsorted ones deadlock.
    appendMany:
      `${insert} SELECT v.p1, v.p2, v.p3, v.p4, ${now}, v.p5, v.p6 FROM ${sharing.given(APPENDED)} ` +
      `${sharing.joined(tables.runs)} ON r.id = v.p1 AND r.attempt = v.p4 AND r.status = 'running' ${sharedSkipLocked}`,
  };
});

export class MysqlDriver implements PooledDriver {
  dialect: MysqlDialect;
  readonly begin = ['SET TRANSACTION ISOLATION LEVEL READ COMMITTED', 'START TRANSACTION'];
  readonly beginShared = this.begin;
  readonly maxBatches = 2;
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
      orLeave: true,
    };
  }

  async appendMany(connection: DriverConnection, appends: readonly PreparedAppend[]): Promise<ReadonlySet<number>> {
    const { changes } = await connection.execute({
      sql: statements(this.dialect).appendMany,
      params: [packedAppends(appends)],
      writes: true,
      orLeave: true,
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
