import { placeholders, quoted, tableNames, type DatabaseType, type Dialect } from '../dialect.js';
import type { ParameterType, BatchSql } from '../batch-sql.js';

/**
 * MySQL 8.4 and 9, and MariaDB 10.6 and newer. Written to both manuals; where they differ, the type says which. Key columns are ASCII with a binary collation,
 * JSON columns LONGTEXT.
 */
export type MysqlDialect = Dialect & {
  /** Clause of a read inside an INSERT: wait for the row, hold it shared (I3). */
  readonly shared: string;
  /** What the server is, as far as it is known yet; statements are made once it is. */
  isMariaDb: boolean;
  /** Expression: the name of the database that the tables are in. */
  readonly database: string;
  readonly batchSql: BatchSql;
};

/** @param database where the host keeps its tables; without it the session's current one */
export function mysqlDialect(type: Extract<DatabaseType, 'mysql' | 'mariadb'>, database?: string): MysqlDialect {
  const qualify = (table: string): string =>
    database === undefined ? table : `\`${database.replaceAll('`', '``')}\`.${table}`;
  const name = database === undefined ? 'DATABASE()' : quoted(database);
  const batchSql = batchSqlOn(() => dialect.isMariaDb);
  const dialect: MysqlDialect = {
    type,
    isMariaDb: type === 'mariadb',
    database: name,
    tables: tableNames(qualify),
    qualify,
    bind: (sql) => sql,
    hasRowLocks: true,
    // UNIX_TIMESTAMP is ambiguous in the hour that the autumn repeats; UTC is not.
    now: `(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)`,
    forUpdate: ' FOR UPDATE',
    forUpdateSkipLocked: ' FOR UPDATE SKIP LOCKED',
    // Both know it; MariaDB refuses FOR SHARE.
    shared: ' LOCK IN SHARE MODE',
    locksAbsentRows: true,
    hasSchemaTable: `SELECT 1 AS found FROM information_schema.tables WHERE table_schema = ${name} AND table_name = 'agent_runs_schema'`,
    bytesOf: (column) => `OCTET_LENGTH(${column})`,
    // Plans are chosen before the LIMIT is thought of: another index that begins with the same column, and a sort of all that match, looks as good.
    indexHint: (index) => ` FORCE INDEX (${index})`,
    estimatedRows: (table) =>
      `SELECT table_rows AS found FROM information_schema.tables WHERE table_schema = ${name} AND table_name = '${table}'`,
    // ON DUPLICATE KEY UPDATE counts 1 either way with FOUND_ROWS, and IGNORE cuts values silently: the plain statement's error is the answer.
    given: batchSql.given,
    batchSql,
    insertIgnore: (table, columns) =>
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${placeholders(columns.length)})`,
    // A refused INSERT leaves a shared lock on the row, and two that hold one wait for each other when both want more. This one queues for the whole lock. The
    // change makes it count 2.
    insertOrLock: (table, columns, counter) =>
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${placeholders(columns.length)}) ON DUPLICATE KEY UPDATE ${counter} = ${counter} + 1`,
    insertOrReplace: (table, columns, key) =>
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${placeholders(columns.length)}) ON DUPLICATE KEY UPDATE ${columns
        .filter((column) => !key.includes(column))
        .map((column) => `${column} = VALUES(${column})`)
        .join(', ')}`,
  };
  return dialect;
}

const TYPES: Record<ParameterType, string> = {
  key: 'VARCHAR(191) CHARACTER SET ascii COLLATE ascii_bin',
  number: 'BIGINT',
  // Else it has the character set of the host's database, and what that cannot hold becomes a question mark.
  text: 'LONGTEXT CHARACTER SET utf8mb4',
};

function batchSqlOn(isMariaDb: () => boolean): BatchSql {
  return {
    given: (parameters) =>
      `JSON_TABLE(?, '$[*]' COLUMNS (place INT PATH '$.place', ${parameters.map((holds, index) => `p${index + 1} ${TYPES[holds]} PATH '$.p${index + 1}'`).join(', ')})) v`,
    // Else an UPDATE of a small table reads, and locks, all of it.
    joined,
    // MariaDB knows no OF; the given rows cannot be locked anyway.
    lockOrSkip: ' FOR UPDATE SKIP LOCKED',
    insert: (table, columns, select) =>
      // MySQL has nothing like it: there the wait ends with the server's own timeout, or ours.
      `${isMariaDb() ? 'SET STATEMENT innodb_lock_wait_timeout = 0 FOR ' : ''}INSERT INTO ${table} (${columns.join(', ')}) ${select}`,
    update: (table, given, set, where) =>
      `UPDATE ${given} ${joined(table)} ON ${where} SET ${set.map((one) => `r.${one}`).join(', ')}`,
  };
}

function joined(table: string): string {
  return `STRAIGHT_JOIN ${table} r FORCE INDEX (PRIMARY)`;
}
