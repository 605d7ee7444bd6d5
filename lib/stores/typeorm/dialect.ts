import type { DataSource } from 'typeorm';
import type { BatchSql, ParameterType } from './batch-sql.js';

/**
 * What a database can do, and how it says it. A statement whose form differs between databases is here with the reason for its form; statements that are
 * the same everywhere stand in the file of their group. A sibling (`sqlite/`, `mysql/`, `postgres/`) fills one of these in and runs programs its own way.
 */
export type DatabaseType = 'better-sqlite3' | 'mysql' | 'mariadb' | 'postgres';

/** Table names, qualified by their schema or database. */
export interface TableNames {
  runs: string;
  journal: string;
  interactions: string;
  inbox: string;
  sessions: string;
  workers: string;
  metadata: string;
  schema: string;
}

export interface Dialect {
  readonly type: DatabaseType;
  readonly tables: TableNames;
  /** A table's name as it stands in a statement. */
  qualify(table: string): string;
  /** A statement with its `?` placeholders in the form the driver wants. */
  bind(sql: string): string;
  /**
   * Rows are locked one by one. Where false, a transaction that writes holds the whole database from its first statement on, and lock clauses are empty.
   */
  readonly hasRowLocks: boolean;
  /** Expression: the database's clock in epoch ms, read when the statement runs, not when its transaction began (I12). */
  readonly now: string;
  /** Clause: wait for the rows and hold them until the end of the transaction. */
  readonly forUpdate: string;
  /** Clause: the same, but leave out rows that somebody else holds. */
  readonly forUpdateSkipLocked: string;
  /**
   * A locking read of a row that is not there locks the place where it would be, in a host's transaction at REPEATABLE READ: two such reads then wait for each
   * other's INSERT, whatever rows they were looking for.
   */
  readonly locksAbsentRows: boolean;
  /** Query: one row if the table with the schema's version is there. */
  readonly hasSchemaTable: string;
  /** Expression: the size of a text column in bytes, without reading the text where the database can. */
  bytesOf(column: string): string;
  /** Clause after a table: walk this index, and in its order. Empty where the planner sees by itself that a LIMIT makes that the cheapest. */
  indexHint(index: string): string;
  /** Query: `found`, how many rows a table has by what the server knows, without counting them. @param table its plain name */
  estimatedRows(table: string): string;
  /** An INSERT of one row that does nothing where any of its keys is taken. On Postgres never an error, which would end the transaction. */
  insertIgnore(table: string, columns: readonly string[]): string;
  /**
   * The same, holding the row that has the key like {@link forUpdate}. It then counts anything but 1, and has to be rolled back.
   * @param counter a number column
   */
  insertOrLock(table: string, columns: readonly string[], counter: string): string;
  /** FROM item `v` with `place`, `p1`, `p2` …, whose one `?` is `encodeRows` of so many rows as there are. */
  given(parameters: readonly ParameterType[]): string;
  /** Null where transactions do not share a connection's round trips. */
  readonly batchSql: BatchSql | null;
  /** An INSERT of one row that replaces the other columns where the key is taken. */
  insertOrReplace(table: string, columns: readonly string[], key: readonly string[]): string;
}

/** A text that is known when statements are built, e.g. the name of a schema. Values are bound. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** JSON text in one statement, in bytes, where the server has no smaller limit: half of the longest text that Node.js can make. */
export const LARGEST_TEXT_BYTES = 256 * 1024 * 1024;

/** `?, ?, ?` */
export function placeholders(count: number): string {
  return Array.from({ length: count }, () => '?').join(', ');
}

export function tableNames(qualify: (name: string) => string = (name) => name): TableNames {
  return {
    runs: qualify('agent_runs'),
    journal: qualify('agent_run_journal'),
    interactions: qualify('agent_run_interactions'),
    inbox: qualify('agent_run_inbox'),
    sessions: qualify('agent_sessions'),
    workers: qualify('agent_run_workers'),
    metadata: qualify('agent_run_metadata'),
    schema: qualify('agent_runs_schema'),
  };
}

/** Builds a group's statements once for each dialect. */
export function perDialect<T, D extends Dialect = Dialect>(build: (dialect: D) => T): (dialect: D) => T {
  const built = new WeakMap<D, T>();
  return (dialect) => {
    let statements = built.get(dialect);
    if (statements === undefined) {
      statements = build(dialect);
      built.set(dialect, statements);
    }
    return statements;
  };
}

/**
 * Pads a list to a length of 1, 2, 4, 8 … by repeating its last value, so that `IN (…)` and `OR` lists have few shapes to prepare. Repeating a value
 * changes neither. The list must not be empty.
 */
export function padded<T>(values: readonly T[]): T[] {
  const length = 2 ** Math.ceil(Math.log2(values.length));
  return Array.from({ length }, (_, index) => values[Math.min(index, values.length - 1)] as T);
}

/**
 * The schema (Postgres) or database (MySQL, MariaDB) that every statement names, so that a pooled connection whose session somebody changed
 * (`SET search_path`, `USE`) cannot lead to other tables. It is what the options of the data source say; where they are silent, TypeORM has asked the first
 * session of its pool, before anybody could change it. Undefined: neither says it, or the database has none (SQLite).
 */
export function schemaOf({ driver, options }: Pick<DataSource, 'driver' | 'options'>): string | undefined {
  const found = driver as { schema?: string | null; searchSchema?: string | null; database?: string | null };
  switch (options.type) {
    case 'postgres':
      return found.schema ?? found.searchSchema ?? undefined;
    case 'mysql':
    case 'mariadb':
      return found.database ?? undefined;
    default:
      return undefined;
  }
}
