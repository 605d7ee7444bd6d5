/** One journal row: the entries of one commit, their place, and the totals after them (decision 4). */
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { RunTotals } from '../../contracts/run.js';
import { perDialect, type Dialect } from './dialect.js';
import { write, type Program } from './program.js';
import { totalsText } from './run.mapper.js';

/** `entries` comes last: readers of the small columns then never touch the pages it overflows to. */
export const JOURNAL_COLUMNS = ['run_id', 'first_sequence', 'entry_count', 'attempt', 'created_at', 'totals', 'entries'];

const statements = perDialect((dialect) => ({
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
): Program<void> {
  const text = JSON.stringify(entries);
  yield* write(statements(dialect).insert, [runId, firstSequence, entries.length, attempt, totalsText(totals), text]);
}
