import { NO_USAGE } from '../../contracts/operation.js';
import type { LeaseView } from '../../contracts/ports/run-store.port.js';
import {
  RUN_SUMMARY_PROPERTIES,
  type RunChange,
  type RunRecord,
  type RunSummary,
  type RunTotals,
  type SessionRecord,
} from '../../contracts/run.js';
import { fromJson, toJson } from '../codec/payload-codec.js';
import type { Dialect } from './dialect.js';
import type { Row, SqlValue } from './program.js';
import { heldBy, numberIn, readable, recordOf, searchable, toColumn, valuesOf } from './rows.js';
import type { ParameterType } from './batch-sql.js';
import { RUNS, SESSIONS } from './tables.js';

/** A run is its header in `agent_runs`, and the sequence and the totals on the last row of its journal. */
type Header = Omit<RunRecord, 'sequence' | 'totals'>;

/** What a run's row says beside its record. */
export interface DerivedColumns {
  results: number;
  answeredSince: number | null;
}

const HEADER_COLUMNS = RUNS.columns.filter(({ isDerived }) => !isDerived);

export const SUMMARY_COLUMNS = HEADER_COLUMNS.filter(({ property }) =>
  (RUN_SUMMARY_PROPERTIES as readonly string[]).includes(property),
);

/** The row of a new run, in the order of the table's columns. */
export function runRow(run: RunRecord, { results, answeredSince }: DerivedColumns): SqlValue[] {
  const actorId = run.actor && searchable(run.actor.id);
  return valuesOf(RUNS.columns, run.id, run, { results, answered_since: answeredSince, actor_id: actorId });
}

/**
 * The columns that a change sets, in one fixed order so that few shapes of statement exist. A field that is undefined is
 * not set.
 */
export function changedColumns(
  runId: string,
  change: RunChange,
): { name: string; value: SqlValue; holds: ParameterType }[] {
  const changed: { name: string; value: SqlValue; holds: ParameterType }[] = [];
  for (const column of HEADER_COLUMNS) {
    const value = change[column.property as keyof RunChange];
    if (value !== undefined)
      changed.push({ name: column.name, value: toColumn(column, runId, value), holds: heldBy(column) });
  }
  return changed;
}

/** @throws JournalCorruptError */
export function runOf(row: Row): RunRecord {
  return readRun(row, strictTotalsOf);
}

/**
 * As {@link runOf}, but unreadable totals count as none: a run with a broken journal can still be locked, and told to
 * need attention.
 */
export function lockedRunOf(row: Row): RunRecord {
  return readRun(row, totalsOf);
}

function readRun(row: Row, totals: (row: Row) => RunTotals): RunRecord {
  return readable(row['id'], 'The header', () => {
    const header = recordOf<Header>(HEADER_COLUMNS, row['id'] as string, row);
    return Object.assign(header, { sequence: sequenceOf(row), totals: totals(row) });
  });
}

/** One unreadable run never makes a list unreadable. */
export function summaryOf(row: Row): RunSummary {
  return readable(row['id'], 'The header', () => ({
    ...recordOf<Omit<RunSummary, 'sequence' | 'totals'>>(SUMMARY_COLUMNS, row['id'] as string, row),
    sequence: sequenceOf(row),
    totals: totalsOf(row),
  }));
}

/** In the order in which they are stored: only ever longer. */
const USAGE_NAMES = Object.keys(NO_USAGE) as (keyof typeof NO_USAGE)[];

export function totalsText(totals: RunTotals): string {
  const { turn, results, usage } = totals;
  // By position: the names would be a tenth of the journal.
  return toJson([turn, results, ...USAGE_NAMES.map((name) => usage[name])]);
}

/** Null unless the run is running and has an owner. `heartbeat_at` and `lease_expires_at` come from the owner's worker row, if there is one. */
export function leaseOf(run: Pick<RunRecord, 'status' | 'owner'>, row: Row): LeaseView | null {
  if (run.status !== 'running' || run.owner === null) return null;
  return {
    owner: run.owner,
    heartbeatAt: numberIn(row, 'lease_heartbeat_at'),
    expiresAt: numberIn(row, 'lease_expires_at'),
  };
}

export function sessionOf(row: Row): SessionRecord {
  return recordOf(SESSIONS.columns, '', row);
}

/** Sequence of the last entry; 0 before the first. */
function sequenceOf(row: Row): number {
  return row['last_first'] === null ? 0 : Number(row['last_first']) + Number(row['last_count']) - 1;
}

/** @throws SyntaxError where they cannot be read */
function strictTotalsOf(row: Row): RunTotals {
  const text = row['last_totals'];
  const stored = typeof text === 'string' ? fromJson(text) : [];
  if (!Array.isArray(stored)) throw new SyntaxError('Totals are a list of numbers.');
  const [turn = 0, results = 0, ...counts] = stored as number[];
  const usage = { ...NO_USAGE };
  for (const [index, name] of USAGE_NAMES.entries()) usage[name] = counts[index] ?? 0;
  return { turn, results, usage };
}

/** None where there are none, or none that can be read. */
export function totalsOf(row: Row): RunTotals {
  try {
    return strictTotalsOf(row);
  } catch {
    return { turn: 0, results: 0, usage: { ...NO_USAGE } };
  }
}

/** Joins the last journal row as `j`. One seek by primary key, whatever the length of the journal; for MAX, MariaDB would read all of it. */
export function lastRowJoin(dialect: Dialect): string {
  const { journal } = dialect.tables;
  return `LEFT JOIN ${journal} j ON j.run_id = r.id AND j.first_sequence = (SELECT l.first_sequence FROM ${journal} l WHERE l.run_id = r.id ORDER BY l.first_sequence DESC LIMIT 1)`;
}

/** Columns that {@link lastRowJoin} brings. */
export const LAST_ROW = 'j.first_sequence AS last_first, j.entry_count AS last_count, j.totals AS last_totals';

const HEADER = HEADER_COLUMNS.map(({ name }) => `r.${name}`).join(', ');

/**
 * The query that every reader of a run shares: runs as `r` with everything a `RunRecord`, its lease and the clock need; a WHERE clause follows.
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
