import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { AppendRequest } from '../../contracts/ports/run-store.port.js';
import type { RunStatus } from '../../contracts/run-status.js';
import type { RunTotals } from '../../contracts/run.js';
import { misplacedAppend, requireOwned } from '../../contracts/store-rules.js';
import { encodePayload } from '../codec/payload-codec.js';
import { type Dialect, perDialect } from './dialect.js';
import { type Program, queryOne, write } from './program.js';
import { heldBy, namesOf } from './rows.js';
import { totalsText } from './runs.js';
import { type ParameterType, batchedInsert, encodeRows } from './batch-sql.js';
import { type ColumnDefinition, JOURNAL } from './tables.js';

/** What a transaction of ours did, and by which row that can be recognised if the answer to its COMMIT is lost. */
export interface Committed<T> {
  readonly value: T;
  /** Null: it appended nothing. */
  readonly row: WrittenRow | null;
}

export const JOURNAL_COLUMNS = namesOf(JOURNAL.columns);

function parameterType(column: ColumnDefinition): ParameterType {
  return column.name === 'run_id' ? 'key' : heldBy(column);
}

/** A journal row that was written, by which it can be recognised. */
export interface WrittenRow {
  readonly runId: string;
  readonly firstSequence: number;
  readonly attempt: number;
  readonly entries: string;
}

const statements = perDialect((dialect) => ({
  lockRun: `SELECT id FROM ${dialect.tables.runs} WHERE id = ?${dialect.forUpdate}`,
  run: `SELECT status, attempt FROM ${dialect.tables.runs} WHERE id = ?`,
  last: `SELECT first_sequence, entry_count FROM ${dialect.tables.journal} WHERE run_id = ? ORDER BY first_sequence DESC LIMIT 1`,
  row: `SELECT attempt, entries FROM ${dialect.tables.journal} WHERE run_id = ? AND first_sequence = ?`,
  batchedInsert: batchedInsert(
    dialect.batchSql,
    dialect.tables.journal,
    JOURNAL.columns.map((column) =>
      column.name === 'created_at'
        ? { name: column.name, is: dialect.now }
        : { name: column.name, holds: parameterType(column) },
    ),
  ),
  insert: `INSERT INTO ${dialect.tables.journal} (${JOURNAL_COLUMNS.join(', ')}) VALUES (?, ?, ?, ?, ${dialect.now}, ?, ?)`,
}));

/** Appends under a lock that the transaction holds already. */
export function* insertJournalRow(
  dialect: Dialect,
  runId: string,
  firstSequence: number,
  attempt: number,
  entries: readonly JournalEntry[],
  totals: RunTotals,
): Program<WrittenRow> {
  const text = encodePayload(runId, 'entries', entries);
  const sql = statements(dialect);
  const values = [runId, firstSequence, entries.length, attempt, totalsText(totals), text];
  yield* write(sql.insert, values, sql.batchedInsert);
  return { runId, firstSequence, attempt, entries: text };
}

/** Whether exactly this row is there, as far as can be seen now. */
export function* isRowThere(dialect: Dialect, row: WrittenRow): Program<boolean> {
  const stored = yield* queryOne(statements(dialect).row, [row.runId, row.firstSequence]);
  return stored !== undefined && Number(stored['attempt']) === row.attempt && stored['entries'] === row.entries;
}

/**
 * Whether this row was committed by a transaction whose answer was lost. Waits for the run's row first, which a transaction that is still on its way holds.
 * Null: it wrote none, so there is nothing to recognise.
 */
export function* wasRowCommitted(dialect: Dialect, row: WrittenRow | null): Program<boolean> {
  if (!row) return false;
  yield* queryOne(statements(dialect).lockRun, [row.runId]);
  return yield* isRowThere(dialect, row);
}

/**
 * An append with its text made, before any transaction begins. The statement that appends is each database's own, because
 * it is the hot path: one row, fenced inside the statement by attempt and status (I3).
 */
export interface PreparedAppend extends WrittenRow {
  readonly count: number;
  readonly totals: string;
  /** See `AppendRequest`. */
  readonly isNext: boolean;
}

export function prepareAppend(request: AppendRequest): PreparedAppend {
  const { runId, attempt, firstSequence, entries, totals, isNext = false } = request;
  return {
    runId,
    attempt,
    firstSequence,
    count: entries.length,
    totals: totalsText(totals),
    entries: encodePayload(runId, 'entries', entries),
    isNext,
  };
}

/** What {@link encodeAppends} holds. */
export const APPENDED = JOURNAL.columns.filter(({ name }) => name !== 'created_at').map(parameterType);

/** Several appends as the rows of a statement for many. */
export function encodeAppends(appends: readonly PreparedAppend[]): string {
  return encodeRows(
    appends.map(({ runId, firstSequence, count, attempt, totals, entries }) => [
      runId,
      firstSequence,
      count,
      attempt,
      totals,
      entries,
    ]),
  );
}

/** Where the journal stands, by a plain read: it has one writer while its run is running, and that is the caller. */
function* lastSequence(dialect: Dialect, runId: string): Program<number> {
  const last = yield* queryOne(statements(dialect).last, [runId]);
  return last ? Number(last['first_sequence']) + Number(last['entry_count']) - 1 : 0;
}

export function* isNextInJournal(dialect: Dialect, { runId, firstSequence }: PreparedAppend): Program<boolean> {
  return (yield* lastSequence(dialect, runId)) + 1 === firstSequence;
}

/**
 * Why an append landed no row. Returns where nothing is wrong: the identical row is there already, or there was nothing to append. The row is looked
 * for before the fence: one that landed stands, even if its run was cancelled or taken over before its owner could be told.
 * @throws FencedError, SequenceConflictError
 */
export function* explainAppend(dialect: Dialect, append: PreparedAppend): Program<void> {
  const { runId, firstSequence, count } = append;
  const sql = statements(dialect);
  if (yield* isRowThere(dialect, append)) return;
  const run = yield* queryOne(sql.run, [runId]);
  requireOwned(append, run && { status: run['status'] as RunStatus, attempt: Number(run['attempt']) });
  const sequence = yield* lastSequence(dialect, runId);
  if (count === 0 && firstSequence === sequence + 1) return;
  throw misplacedAppend(append, count, sequence);
}
