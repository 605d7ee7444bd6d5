import { placeholders, quoted, tableNames, type Dialect } from '../dialect.js';
import type { ParameterType, BatchSql } from '../batch-sql.js';

/** PostgreSQL 13 and newer. Key columns have the collation "C"; JSON columns are text, because jsonb refuses NUL and reorders keys. */
export type PostgresDialect = Dialect & { readonly batchSql: BatchSql };

/** @param schema where the host keeps its tables; without it the search path decides */
export function postgresDialect(schema?: string): PostgresDialect {
  const qualify = (table: string): string =>
    schema === undefined ? table : `"${schema.replaceAll('"', '""')}".${table}`;
  const tables = tableNames(qualify);
  const namespace = schema === undefined ? 'current_schema()' : quoted(schema);
  return {
    type: 'postgres',
    tables,
    qualify,
    bind,
    hasRowLocks: true,
    // `now()` is the transaction's beginning, which a wait for a lock makes old.
    now: `CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS bigint)`,
    forUpdate: ' FOR UPDATE',
    forUpdateSkipLocked: ' FOR UPDATE SKIP LOCKED',
    locksAbsentRows: false,
    // Not `to_regclass`: it answers from a cache that the wait for the schema lock leaves stale.
    hasSchemaTable: `SELECT 1 AS found FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = 'agent_runs_schema' AND n.nspname = ${namespace}`,
    bytesOf: (column) => `octet_length(${column})`,
    indexHint: () => '',
    estimatedRows: (table) =>
      `SELECT CAST(reltuples AS bigint) AS found FROM pg_catalog.pg_class WHERE oid = CAST(${quoted(qualify(table))} AS regclass)`,
    given: batchSql.given,
    batchSql,
    insertIgnore,
    // Whoever has the key has committed by then; a shared lock that two could hold, each waiting for the other, there is none.
    insertOrLock: insertIgnore,
    insertOrReplace: (table, columns, key) =>
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${placeholders(columns.length)}) ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${columns
        .filter((column) => !key.includes(column))
        .map((column) => `${column} = excluded.${column}`)
        .join(', ')}`,
  };
}

function insertIgnore(table: string, columns: readonly string[]): string {
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${placeholders(columns.length)}) ON CONFLICT DO NOTHING`;
}

const numbered = new Map<string, string>();
const MAX_NUMBERED = 1_000;

/** `?` placeholders as `$1`, `$2` … None of our statements has a `?` in a text or an operator. */
function bind(sql: string): string {
  let text = numbered.get(sql);
  if (text === undefined) {
    let index = 0;
    text = sql.replace(/\?/g, () => `$${(index += 1)}`);
    if (numbered.size >= MAX_NUMBERED) numbered.clear();
    numbered.set(sql, text);
  }
  return text;
}

const TYPES: Record<ParameterType, string> = { key: 'text', number: 'bigint', text: 'text' };

const batchSql: BatchSql = {
  // Always true, but the planner takes it for rare and counts on one row. It would count on a hundred, and rather read the tables than their indexes.
  given: (parameters) =>
    `(SELECT * FROM json_to_recordset(CAST(? AS json)) AS given (place integer, ${parameters.map((holds, index) => `p${index + 1} ${TYPES[holds]}`).join(', ')}) WHERE place - place = 0) v`,
  joined: (table) => `JOIN ${table} r`,
  lockOrSkip: ' FOR UPDATE OF r SKIP LOCKED',
  // How long it may wait is said where the transaction begins.
  insert: (table, columns, select) => `INSERT INTO ${table} (${columns.join(', ')}) ${select} ON CONFLICT DO NOTHING`,
  update: (table, given, set, where) => `UPDATE ${table} r SET ${set.join(', ')} FROM ${given} WHERE ${where}`,
};
