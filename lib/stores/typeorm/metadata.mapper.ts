/** Metadata of a run as rows that can be looked up by value. The authoritative copy, with its types, is on the run. */
import type { RunMetadata } from '../../contracts/run.js';
import { searchable } from './column.mapper.js';
import type { SqlValue } from './program.js';

/** Rows of (run, name, value, creation of the run): an index has them in the order of the list of runs. */
export function metadataRows(run: { id: string; createdAt: number; metadata: RunMetadata }): SqlValue[][] {
  return Object.entries(run.metadata).map(([name, value]) => [run.id, name, metadataValue(value), run.createdAt]);
}

/** The text a value is found by; its type does not matter, since a query string has none. */
export function metadataValue(value: string | number | boolean): string {
  return searchable(String(value));
}
