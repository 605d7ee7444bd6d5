/** Metadata of a run as rows that can be looked up by value (decision 27). The authoritative copy, with its types, is on the run. */
import { createHash } from 'node:crypto';
import type { RunMetadata } from '../../contracts/run.js';
import { comparable } from './column.mapper.js';
import type { SqlValue } from './program.js';

/** What an index on every database can hold. */
const LONGEST_VALUE = 191;

/** Rows of (run, name, value). */
export function metadataRows(run: { id: string; metadata: RunMetadata }): SqlValue[][] {
  return Object.entries(run.metadata).map(([name, value]) => [run.id, name, metadataValue(value)]);
}

/** The text a value is found by; its type does not matter, since a query string has none. Longer texts are found by their SHA-256. */
export function metadataValue(value: string | number | boolean): string {
  // Collations of MySQL and MariaDB may ignore blanks at the end.
  const text = comparable(String(value)).replace(/ $/, '\\u0020');
  return text.length <= LONGEST_VALUE ? text : `sha256:${createHash('sha256').update(text).digest('hex')}`;
}
