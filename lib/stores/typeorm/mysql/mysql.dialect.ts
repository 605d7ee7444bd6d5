/**
 * MySQL 8.4 and 9, and MariaDB 10.6 and newer. Written to both manuals; where they differ, the type says which. Key columns are ASCII with a binary collation
 * (STO-5), JSON columns LONGTEXT.
 */
import { marks, tableNames, type DatabaseType, type Dialect } from '../dialect.js';

export type MysqlDialect = Dialect & {
  /** Clause of a read inside an INSERT: wait for the row, hold it shared (I3). */
  readonly shared: string;
};

export function mysqlDialect(type: Extract<DatabaseType, 'mysql' | 'mariadb'>): MysqlDialect {
  return {
    type,
    tables: tableNames(),
    qualify: (table) => table,
    placed: (sql) => sql,
    hasRowLocks: true,
    // UNIX_TIMESTAMP is ambiguous in the hour that the autumn repeats; UTC is not.
    now: `(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)`,
    forUpdate: ' FOR UPDATE',
    forUpdateSkipLocked: ' FOR UPDATE SKIP LOCKED',
    // Both know it; MariaDB refuses FOR SHARE.
    shared: ' LOCK IN SHARE MODE',
    readLatest: ' LOCK IN SHARE MODE',
    hasSchemaTable: `SELECT 1 AS found FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'agent_runs_schema'`,
    bytesOf: (column) => `OCTET_LENGTH(${column})`,
    // ON DUPLICATE KEY UPDATE counts 1 either way with FOUND_ROWS, and IGNORE cuts values silently: the plain statement's error is the answer.
    insertOrLeave: (table, columns) => `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${marks(columns.length)})`,
    insertOrReplace: (table, columns, key) =>
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${marks(columns.length)}) ON DUPLICATE KEY UPDATE ${columns
        .filter((column) => !key.includes(column))
        .map((column) => `${column} = VALUES(${column})`)
        .join(', ')}`,
  };
}
