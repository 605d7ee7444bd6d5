import { toJson } from '../codec/payload-codec.js';
import type { BatchedStatement, SqlValue } from './program.js';

/** What a parameter is: a `key` is compared with key columns. */
export type ParameterType = 'key' | 'number' | 'text';

/**
 * How the same statement of several programs is one, where transactions share a commit. The statement for many reads the parameters of each from
 * a table that comes as one JSON text: one prepared shape for any number of programs, and the cheapest way to hand over many values on both servers.
 * In it `v.p1`, `v.p2` … stand where the statement for one has its first, second … `?`, and `v.place` tells the programs apart.
 */
export interface BatchSql {
  /** FROM item `v` with `place`, `p1`, `p2` …; its one `?` is {@link encodeRows}. */
  given(parameters: readonly ParameterType[]): string;
  /** JOIN of the given rows with a table as `r` by its primary key, in their order; ON follows. */
  joined(table: string): string;
  /** Clause: lock the rows of `r` and leave out those that somebody holds. */
  readonly lockOrSkip: string;
  /**
   * An INSERT … SELECT that, where a key is taken, leaves that row out or fails altogether: the count tells. Where somebody is just inserting that key, it fails
   * rather than make the whole group wait.
   */
  insert(table: string, columns: readonly string[], select: string): string;
  /** Updates `r` from the given rows. @param set assignments, their targets by plain name */
  update(table: string, given: string, set: readonly string[], where: string): string;
}

/** A statement for many, where there are any. */
export function batched(
  batchSql: BatchSql | null,
  build: (batchSql: BatchSql) => string,
): BatchedStatement | undefined {
  return batchSql ? { sql: build(batchSql) } : undefined;
}

/** An INSERT of one row for each program. A column without `holds` is no parameter but an expression. */
export function batchedInsert(
  batchSql: BatchSql | null,
  table: string,
  columns: readonly ({ name: string; holds: ParameterType } | { name: string; is: string })[],
): BatchedStatement | undefined {
  const parameters = columns.flatMap((column) => ('holds' in column ? [column] : []));
  const value = (column: (typeof columns)[number]): string =>
    'holds' in column ? parameter(parameters.indexOf(column)) : column.is;
  return batched(batchSql, ({ insert, given }) =>
    insert(
      table,
      columns.map(({ name }) => name),
      `SELECT ${columns.map(value).join(', ')} FROM ${given(parameters.map(({ holds }) => holds))}`,
    ),
  );
}

/** Name of a parameter in a statement for many. @param index from 0 */
export function parameter(index: number): string {
  return `v.p${index + 1}`;
}

/** The rows of `BatchSql.given`: for each program its parameters, in its place. */
export function encodeRows(programs: readonly (readonly SqlValue[])[]): string {
  return toJson(
    programs.map((parameters, place) => {
      const row: Record<string, SqlValue> = { place };
      for (let index = 0; index < parameters.length; index += 1) row[`p${index + 1}`] = parameters[index] as SqlValue;
      return row;
    }),
  );
}
