/**
 * Single values between our types and what drivers take and give. JSON goes in as text whose escapes keep lone surrogates and NUL (RFC 8259), so that no
 * database sees a character it refuses; it is read back from text, or from a value that a driver has parsed already.
 */
import { createHash } from 'node:crypto';
import { JournalCorruptError } from '../../errors/store.errors.js';
import type { SqlValue } from './program.js';

/**
 * - `text`, `number`: as they are; bigints arrive as text from some drivers
 * - `flag`: 0 or 1
 * - `json`: text, never null in our types unless the column is null
 */
export type ColumnKind = 'text' | 'number' | 'flag' | 'json';

export function toColumn(kind: ColumnKind, value: unknown): SqlValue {
  if (value === null || value === undefined) return null;
  if (kind === 'json') return JSON.stringify(value);
  if (kind === 'flag') return value ? 1 : 0;
  return value as SqlValue;
}

/** @throws SyntaxError for a JSON column that holds no JSON */
export function fromColumn(kind: ColumnKind, value: unknown): unknown {
  if (value === null || value === undefined) return null;
  switch (kind) {
    case 'json':
      return typeof value === 'string' ? JSON.parse(value) : value;
    case 'number':
      return Number(value);
    case 'flag':
      return Number(value) !== 0;
    default:
      return value;
  }
}

/** What an index on every database can hold. */
const LONGEST_VALUE = 191;

/**
 * A text of the host's as a column to be looked for, in the same form when it is written: what some database refuses or folds (NUL, lone surrogates, a blank at
 * the end) is escaped; a text that is too long for an index is found by its SHA-256.
 */
export function searchable(text: string): string {
  // Collations of MySQL and MariaDB may ignore blanks at the end.
  const escaped = JSON.stringify(text).slice(1, -1).replace(/ $/, '\\u0020');
  if (escaped.length <= LONGEST_VALUE) return escaped;
  return `sha256:${createHash('sha256').update(escaped).digest('hex')}`;
}

/**
 * Reads what belongs to one run.
 * @throws JournalCorruptError for what cannot be read; the parser's own message is left out because it quotes the text
 */
export function readable<T>(runId: unknown, what: string, read: () => T): T {
  try {
    return read();
  } catch {
    throw new JournalCorruptError(
      `${what} of run ${String(runId)} cannot be read: a column that must hold JSON holds something else. Other runs are not affected.`,
      { details: { runId } },
    );
  }
}
