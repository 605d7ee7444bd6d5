/**
 * The first rows of several ordered selections as those of one. Where rows of several statuses are wanted in an order that an index has within each of them, the
 * database would sort all that match, or walk through all that do not. Each selection walks its own index instead, and stops.
 */
import type { SqlValue } from './program.js';

/** Part of a statement, and the values of its `?` marks. */
export interface Fragment {
  readonly sql: string;
  readonly params: readonly SqlValue[];
}

/**
 * @param selections without ORDER BY and LIMIT, all with the same columns
 * @param order within a selection, and of its columns by their names
 */
export function firstRows(
  selections: readonly Fragment[],
  order: { within: string; byName: string },
  limit: number,
): Fragment {
  const parts = selections.map(({ sql }) => `SELECT * FROM (${sql} ORDER BY ${order.within} LIMIT ?) one_of`);
  return {
    sql: `SELECT * FROM (${parts.join(' UNION ALL ')}) all_of ORDER BY ${order.byName} LIMIT ?`,
    params: [...selections.flatMap(({ params }) => [...params, limit]), limit],
  };
}
