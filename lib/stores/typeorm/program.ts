/**
 * A program is what a store does in one transaction, written once for every database: a generator that yields statements and is given their rows. SQLite
 * runs it in one synchronous turn, the others with an await between statements. It has no I/O of its own, so running it again from the start after a lost
 * race or a deadlock is always right: everything it knows, it reads again.
 */

export type SqlValue = string | number | null;

/** A row by column name, as the driver gives it: numbers may come as text. */
export type Row = Record<string, unknown>;

export interface Statement {
  readonly sql: string;
  /** In the order of the `?` marks. */
  readonly params: readonly SqlValue[];
  /** Changes rows; a program that has not written yet can be refused without taking anything back. */
  readonly writes: boolean;
  /** Counts 0 instead of failing where a key is taken; for databases that say so by an error which leaves their transaction usable. */
  readonly orLeave?: true;
}

export interface Answer {
  /** Empty for a statement that writes. */
  readonly rows: readonly Row[];
  /** Rows that a writing statement matched. */
  readonly changes: number;
}

export type Program<T> = Generator<Statement, T, Answer>;

/** All rows of a query. */
export function* query(sql: string, params: readonly SqlValue[] = []): Program<readonly Row[]> {
  return (yield { sql, params, writes: false }).rows;
}

/** The first row of a query, or undefined. */
export function* queryOne(sql: string, params: readonly SqlValue[] = []): Program<Row | undefined> {
  return (yield { sql, params, writes: false }).rows[0];
}

/** Runs a writing statement. @returns how many rows it matched */
export function* write(sql: string, params: readonly SqlValue[]): Program<number> {
  return (yield { sql, params, writes: true }).changes;
}

/** Runs an INSERT made by `Dialect.insertOrLeave`. @returns false where a key was taken */
export function* insertOrLeave(sql: string, params: readonly SqlValue[]): Program<boolean> {
  return (yield { sql, params, writes: true, orLeave: true }).changes === 1;
}
