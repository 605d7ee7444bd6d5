/** The query that every reader of a run shares: its header, the last row of its journal, and its owner's lease. */
import type { Dialect } from './dialect.js';
import { RUN_COLUMNS } from './run.mapper.js';

/** Joins the last journal row as `j`. One seek by primary key, whatever the length of the journal; for MAX, MariaDB would read all of it. */
export function lastRowJoin(dialect: Dialect): string {
  const { journal } = dialect.tables;
  return `LEFT JOIN ${journal} j ON j.run_id = r.id AND j.first_sequence = (SELECT l.first_sequence FROM ${journal} l WHERE l.run_id = r.id ORDER BY l.first_sequence DESC LIMIT 1)`;
}

/** Columns that {@link lastRowJoin} brings. */
export const LAST_ROW = 'j.first_sequence AS last_first, j.entry_count AS last_count, j.totals AS last_totals';

const HEADER = RUN_COLUMNS.map(({ name }) => `r.${name}`).join(', ');

/**
 * Runs as `r` with everything a `RunRecord`, its lease and the clock need; a WHERE clause follows.
 * @param more further columns
 * @param from what brings the runs as `r`
 */
export function runView(dialect: Dialect, more: readonly string[] = [], from = `${dialect.tables.runs} r`): string {
  return (
    `SELECT ${[...more, HEADER].join(', ')}, ${LAST_ROW}, w.heartbeat_at AS lease_heartbeat_at, w.lease_expires_at AS lease_expires_at, ${dialect.now} AS clock ` +
    `FROM ${from} ${lastRowJoin(dialect)} LEFT JOIN ${dialect.tables.workers} w ON w.id = r.owner`
  );
}

/** The same without the lease: no row of another table is involved that somebody else has to write. */
export function recordView(dialect: Dialect): string {
  return `SELECT ${HEADER}, ${LAST_ROW} FROM ${dialect.tables.runs} r ${lastRowJoin(dialect)}`;
}
