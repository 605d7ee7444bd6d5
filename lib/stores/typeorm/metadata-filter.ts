/** Selects by metadata of runs: all pairs, each by the index over names and values, or by its run, whichever the database finds better. */
import type { RunMetadata } from '../../contracts/run.js';
import type { Dialect } from './dialect.js';
import type { Filter } from './filter.js';
import { metadataValue } from './metadata.mapper.js';

/** @returns joins of the rows of metadata as `m0`, `m1` …; their conditions are in the filter then */
export function joinMetadata(dialect: Dialect, filter: Filter, runId: string, metadata: RunMetadata = {}): string {
  const pairs = Object.entries(metadata);
  for (const [n, [name, value]] of pairs.entries()) {
    filter.key(`m${n}.name`, name).add(`m${n}.value = ?`, metadataValue(value));
  }
  return pairs.map((_, n) => ` JOIN ${dialect.tables.metadata} m${n} ON m${n}.run_id = ${runId}`).join('');
}
