import { placeholders, padded } from './dialect.js';
import type { SqlValue } from './program.js';
import { searchable } from './rows.js';

/** What a key column can hold. MariaDB would compare anything else with every row, in another character set, and Postgres refuses NUL. */
const KEY_TEXT = /^[\x20-\x7e]*$/;

/** Conditions of a WHERE clause and their values, in step. Values are always bound, never spelled. */
export class Filter {
  private readonly conditions: string[] = [];
  private readonly values: SqlValue[] = [];

  add(condition: string, ...params: SqlValue[]): this {
    this.conditions.push(condition);
    this.values.push(...params);
    return this;
  }

  /** For a key column. Undefined leaves it open. */
  key(column: string, value: string | undefined): this {
    if (value === undefined) return this;
    return KEY_TEXT.test(value) ? this.add(`${column} = ?`, value) : this.add('1 = 0');
  }

  /** For a column of {@link searchable} texts. Undefined leaves it open. */
  text(column: string, value: string | undefined): this {
    return value === undefined ? this : this.add(`${column} = ?`, searchable(value));
  }

  /** From one moment on, and before the other. Undefined leaves it open. */
  created(column: string, { createdSince, createdBefore }: { createdSince?: number; createdBefore?: number }): this {
    if (createdSince !== undefined) this.add(`${column} >= ?`, createdSince);
    if (createdBefore !== undefined) this.add(`${column} < ?`, createdBefore);
    return this;
  }

  /** An empty list matches nothing. */
  oneOf(column: string, values: readonly string[] | undefined): this {
    if (values === undefined) return this;
    const [first, ...others] = values;
    if (first === undefined) return this.add('1 = 0');
    if (others.length === 0) return this.add(`${column} = ?`, first);
    const list = padded(values);
    return this.add(`${column} IN (${placeholders(list.length)})`, ...list);
  }

  /** A filter with these conditions and further ones. */
  and(): Filter {
    return new Filter().add(this.conditions.join(' AND ') || '1 = 1', ...this.values);
  }

  where(): Fragment {
    return { sql: this.conditions.length === 0 ? '' : ` WHERE ${this.conditions.join(' AND ')}`, params: this.values };
  }
}

/** Part of a statement, and the values of its `?` placeholders. */
export interface Fragment {
  readonly sql: string;
  readonly params: readonly SqlValue[];
}

/**
 * The first rows of several ordered selections as those of one. Where rows of several statuses are wanted in an order
 * that an index has within each of them, the database would sort all that match, or walk through all that do not. Each
 * selection walks its own index instead, and stops.
 *
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
