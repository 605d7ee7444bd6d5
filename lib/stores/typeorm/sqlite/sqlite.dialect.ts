import { placeholders, tableNames, type Dialect } from '../dialect.js';

/**
 * SQLite through better-sqlite3. One connection, one writer: the fence needs no lock clause because each transaction of ours begins with BEGIN IMMEDIATE,
 * which nobody else's write can overlap, and runs to its end in one synchronous turn.
 */
export const sqliteDialect: Dialect = {
  type: 'better-sqlite3',
  tables: tableNames(),
  qualify: (table) => table,
  bind: (sql) => sql,
  hasRowLocks: false,
  // The clock of the process: SQLite has no other. `subsec` needs SQLite 3.42; better-sqlite3 12 carries 3.49 or newer.
  now: `CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER)`,
  forUpdate: '',
  forUpdateSkipLocked: '',
  locksAbsentRows: false,
  hasSchemaTable: `SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = 'agent_runs_schema'`,
  bytesOf: (column) => `octet_length(${column})`,
  indexHint: () => '',
  // Rows are only ever added, so the last one has the number of all; where old ones were deleted it is too high.
  estimatedRows: (table) => `SELECT MAX(rowid) AS found FROM ${table}`,
  given: (parameters) =>
    `(SELECT json_extract(value, '$.place') AS place, ${parameters.map((_, index) => `json_extract(value, '$.p${index + 1}') AS p${index + 1}`).join(', ')} FROM json_each(?)) v`,
  batchSql: null,
  insertIgnore,
  insertOrLock: insertIgnore,
  insertOrReplace: (table, columns, key) =>
    `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${placeholders(columns.length)}) ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${columns
      .filter((column) => !key.includes(column))
      .map((column) => `${column} = excluded.${column}`)
      .join(', ')}`,
};

function insertIgnore(table: string, columns: readonly string[]): string {
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${placeholders(columns.length)}) ON CONFLICT DO NOTHING`;
}
