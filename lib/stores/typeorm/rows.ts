import { createHash } from 'node:crypto';
import type { RunMetadata } from '../../contracts/run.js';
import { JournalCorruptError } from '../../errors/store.errors.js';
import { decodePayload, encodePayload, fromJson, toJson } from '../codec/payload-codec.js';
import type { Row, SqlValue } from './program.js';
import type { ParameterType } from './batch-sql.js';
import type { ColumnDefinition, ColumnHolds } from './tables.js';

type Columns = readonly ColumnDefinition[];
type Stored = Pick<ColumnDefinition, 'name' | 'holds'>;

export function namesOf(columns: Columns): string[] {
  return columns.map(({ name }) => name);
}

/** What a column holds as a parameter of a statement for many, where it is not compared with a key. */
export function heldBy({ holds }: Pick<ColumnDefinition, 'holds'>): ParameterType {
  return NUMERIC.has(holds) ? 'number' : 'text';
}

const NUMERIC: ReadonlySet<ColumnHolds> = new Set(['flag', 'count', 'number', 'time']);

export function toColumn({ name, holds }: Stored, runId: string, value: unknown): SqlValue {
  if (value === null || value === undefined) return null;
  switch (holds) {
    case 'payload':
      return encodePayload(runId, name, value);
    case 'json':
      return toJson(value);
    case 'flag':
      return value ? 1 : 0;
    default:
      return value as SqlValue;
  }
}

/** @throws SyntaxError for anything but what {@link toColumn} made, as drivers give it back: bigints may come as text */
export function fromColumn({ name, holds }: Stored, runId: string, value: unknown): unknown {
  if (value === null || value === undefined) return null;
  if (NUMERIC.has(holds)) {
    const number = Number(value);
    if (Number.isNaN(number)) throw new SyntaxError(`${name} holds no number.`);
    return holds === 'flag' ? number !== 0 : number;
  }
  if (typeof value !== 'string') throw new SyntaxError(`${name} holds no text.`);
  if (holds === 'payload') return decodePayload(runId, name, value);
  return holds === 'json' ? fromJson(value) : value;
}

/** A number column that may be null. */
export function numberIn(row: Row, name: string): number | null {
  const value = row[name];
  return value === null || value === undefined ? null : Number(value);
}

/** A record as the values of a row. @param derived those of the columns that are no property of the record */
export function valuesOf(
  columns: Columns,
  runId: string,
  record: object,
  derived: Readonly<Record<string, SqlValue>> = {},
): SqlValue[] {
  const properties = record as Readonly<Record<string, unknown>>;
  return columns.map((column) =>
    column.isDerived ? (derived[column.name] ?? null) : toColumn(column, runId, properties[column.property]),
  );
}

/** The properties of a record that have columns of their own. @throws SyntaxError */
export function recordOf<T>(columns: Columns, runId: string, row: Row): T {
  const record: Record<string, unknown> = {};
  for (const column of columns) {
    if (!column.isDerived) record[column.property] = fromColumn(column, runId, row[column.name]);
  }
  return record as T;
}

/** What an index on every database can hold. */
const LONGEST_VALUE = 191;

/**
 * A text of the host's as a column to be looked for, in the same form when it is written: what some database refuses or
 * folds (NUL, lone surrogates, a blank at the end) is escaped; a text that is too long for an index is found by its
 * SHA-256.
 */
export function searchable(text: string): string {
  // Collations of MySQL and MariaDB may ignore blanks at the end.
  const escaped = toJson(text).slice(1, -1).replace(/ $/, '\\u0020');
  if (escaped.length <= LONGEST_VALUE) return escaped;
  return `sha256:${createHash('sha256').update(escaped).digest('hex')}`;
}

/**
 * Reads what belongs to one run.
 * @throws JournalCorruptError for what cannot be read; the parser's own message is left out because it quotes the text
 */
export function readable<T>(runId: unknown, subject: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new JournalCorruptError(
      `${subject} of run ${String(runId)} cannot be read: a column that must hold JSON holds something else. Other runs are not affected.`,
      { details: { runId } },
    );
  }
}

/**
 * Metadata of a run as rows of (run, name, value, creation of the run), which can be looked up by value in the order of
 * the list of runs. The authoritative copy, with its types, is on the run.
 */
export function metadataRows(run: { id: string; createdAt: number; metadata: RunMetadata }): SqlValue[][] {
  return Object.entries(run.metadata).map(([name, value]) => [run.id, name, metadataValue(value), run.createdAt]);
}

/** The text a value is found by; its type does not matter, since a query string has none. */
export function metadataValue(value: string | number | boolean): string {
  return searchable(String(value));
}
