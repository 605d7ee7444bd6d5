/** One journal row: the entries of one commit, their place, and the totals after them. */
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { RunTotals } from '../../contracts/run.js';
import { perDialect, type Dialect } from './dialect.js';
import { queryOne, write, type Program } from './program.js';
import { totalsText } from './run.mapper.js';
import { insertForMany } from './sharing.js';

/** `entries` comes last: readers of the small columns then never touch the pages it overflows to. */
export const JOURNAL_COLUMNS = [
  'run_id',
  'first_sequence',
  'entry_count',
  'attempt',
  'created_at',
  'totals',
  'entries',
];

/** A journal row that was written, by which it can be recognised. */
export interface WrittenRow {
  readonly runId: string;
  readonly firstSequence: number;
  readonly attempt: number;
  readonly entries: string;
}

const statements = perDialect((dialect) => ({
  lockRun: `SELECT id FROM ${dialect.tables.runs} WHERE id = ?${dialect.forUpdate}`,
  row: `SELECT attempt, entries FROM ${dialect.tables.journal} WHERE run_id = ? AND first_sequence = ?`,
  insertForMany: insertForMany(dialect.sharing, dialect.tables.journal, [
    { name: 'run_id', holds: 'key' },
    { name: 'first_sequence', holds: 'number' },
    { name: 'entry_count', holds: 'number' },
    { name: 'attempt', holds: 'number' },
    { name: 'created_at', is: dialect.now },
    { name: 'totals', holds: 'text' },
    { name: 'entries', holds: 'text' },
  ]),
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
  const text = JSON.stringify(entries);
  const sql = statements(dialect);
  const values = [runId, firstSequence, entries.length, attempt, totalsText(totals), text];
  yield* write(sql.insert, values, sql.insertForMany);
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
export function* hasRowLanded(dialect: Dialect, row: WrittenRow | null): Program<boolean> {
  if (!row) return false;
  yield* queryOne(statements(dialect).lockRun, [row.runId]);
  return yield* isRowThere(dialect, row);
}
