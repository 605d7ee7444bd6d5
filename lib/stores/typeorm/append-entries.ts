/**
 * Group `append`, the parts every database shares: the form of a row, and what an append means that landed no row. The statement itself is each twin's own,
 * because it is the hot path: one row, fenced inside the statement by attempt and status (I3).
 */
import type { RunStatus } from '../../contracts/run-status.js';
import { misplacedAppend, requireOwned } from '../../contracts/store-rules.js';
import type { AppendRequest } from '../../contracts/ports/run-store.port.js';
import { perDialect, type Dialect } from './dialect.js';
import { isRowThere, type WrittenRow } from './journal-row.js';
import { queryOne, type Program } from './program.js';
import { totalsText } from './run.mapper.js';
import { packed, type Holds } from './sharing.js';

/** An append with its text made, before any transaction begins. */
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
    entries: JSON.stringify(entries),
    isNext,
  };
}

/** What {@link packedAppends} holds. */
export const APPENDED: readonly Holds[] = ['key', 'number', 'number', 'number', 'text', 'text'];

/** Several appends as the rows of a statement for many. */
export function packedAppends(appends: readonly PreparedAppend[]): string {
  return packed(
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

const statements = perDialect(({ tables }) => ({
  run: `SELECT status, attempt FROM ${tables.runs} WHERE id = ?`,
  last: `SELECT first_sequence, entry_count FROM ${tables.journal} WHERE run_id = ? ORDER BY first_sequence DESC LIMIT 1`,
}));

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
  const last = yield* queryOne(sql.last, [runId]);
  const sequence = last ? Number(last['first_sequence']) + Number(last['entry_count']) - 1 : 0;
  if (count === 0 && firstSequence === sequence + 1) return;
  throw misplacedAppend(append, count, sequence);
}
