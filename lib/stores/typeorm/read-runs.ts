import type { JournalEntry, SequencedEntry } from '../../contracts/journal-entry.js';
import type { JournalNews, JournalPosition, LeaseView, RunAtOneMoment } from '../../contracts/ports/run-store.port.js';
import type { RunRecord, SessionRecord } from '../../contracts/run.js';
import type { RunStatus } from '../../contracts/run-status.js';
import { JournalCorruptError } from '../../errors/store.errors.js';
import { decodePayload } from '../codec/payload-codec.js';
import { encodeRows } from './batch-sql.js';
import { namesOf, readable } from './rows.js';
import { SESSIONS } from './tables.js';
import { perDialect, type Dialect } from './dialect.js';
import { INTERACTION_COLUMNS, interactionOf } from './interactions.js';
import { query, queryOne, type Program, type Row } from './program.js';
import { leaseOf, runOf, runView, sessionOf } from './runs.js';

/** Prefix of the columns of an open interaction beside those of its run. */
const OPEN = 'open_';

const statements = perDialect((dialect) => {
  const { journal, sessions } = dialect.tables;
  return {
    run: `${runView(dialect)} WHERE r.id = ?`,
    // One statement, because each sees one moment: at READ COMMITTED two of them would see two.
    moment: `${runView(
      dialect,
      INTERACTION_COLUMNS.map((name) => `i.${name} AS ${OPEN}${name}`),
      `${dialect.tables.runs} r LEFT JOIN ${dialect.tables.interactions} i ON i.run_id = r.id AND i.status = 'pending'`,
    )} WHERE r.id = ? ORDER BY i.created_at, i.place, i.id`,
    // A row has at least one entry, so `limit` rows are always enough.
    rows:
      `SELECT first_sequence, entry_count, entries FROM ${journal} WHERE run_id = ? AND first_sequence >= ` +
      `COALESCE((SELECT l.first_sequence FROM ${journal} l WHERE l.run_id = ? AND l.first_sequence <= ? ORDER BY l.first_sequence DESC LIMIT 1), 0) ` +
      `ORDER BY first_sequence LIMIT ?`,
    follow:
      `SELECT r.id AS run_id, r.status AS status, j.first_sequence AS first_sequence, j.entry_count AS entry_count, j.entries AS entries ` +
      `FROM ${dialect.given(['key', 'number'])} JOIN ${dialect.tables.runs} r ON r.id = v.p1 ` +
      `JOIN ${journal} j ON j.run_id = r.id AND j.first_sequence > v.p2 ORDER BY v.place, j.first_sequence LIMIT ?`,
    session: `SELECT ${namesOf(SESSIONS.columns).join(', ')} FROM ${sessions} WHERE id = ?`,
    pending: `SELECT COUNT(*) AS found FROM (${upTo(dialect, 'pending')} UNION ALL ${upTo(dialect, 'queued')}) counted`,
  };
});

/** In the order of an index, which is then all that is read. */
function upTo({ tables, indexHint }: Dialect, status: RunStatus): string {
  return `SELECT * FROM (SELECT id FROM ${tables.runs}${indexHint('agent_runs_status')} WHERE status = '${status}' ORDER BY created_at, id LIMIT ?) ${status}_ones`;
}

export function* loadRun(dialect: Dialect, runId: string): Program<{ run: RunRecord; lease: LeaseView | null } | null> {
  const row = yield* queryOne(statements(dialect).run, [runId]);
  if (!row) return null;
  const run = runOf(row);
  return { run, lease: leaseOf(run, row) };
}

export function* readMoment(dialect: Dialect, runId: string): Program<RunAtOneMoment | null> {
  const rows = yield* query(statements(dialect).moment, [runId]);
  const [row] = rows;
  if (!row) return null;
  const run = runOf(row);
  const open = rows.filter((one) => one[`${OPEN}id`] !== null);
  const interactions = open.map((one) =>
    interactionOf(Object.fromEntries(INTERACTION_COLUMNS.map((name) => [name, one[`${OPEN}${name}`]])) as Row),
  );
  return { run, lease: leaseOf(run, row), interactions };
}

/** Group of plain reads of one thing: a run, its journal, a session. A journal that cannot be read blocks its own run only. */
export function* readJournal(
  dialect: Dialect,
  runId: string,
  after: number,
  limit: number,
): Program<{ run: RunRecord; entries: SequencedEntry[] } | null> {
  const row = yield* queryOne(statements(dialect).run, [runId]);
  if (!row) return null;
  const run = runOf(row);
  if (after >= run.sequence || limit <= 0) return { run, entries: [] };
  const rows = yield* query(statements(dialect).rows, [runId, runId, after + 1, limit]);
  return { run, entries: entriesAfter(run, rows, after, limit) };
}

/**
 * Unpacks rows up to the run's own sequence: the journal only grows, so that is the state the run was read in, though rows were read later. Stops at the first
 * gap. A gap right where the reader stands would hold it there for ever: that is corruption. */
function entriesAfter(run: RunRecord, rows: readonly Row[], after: number, limit: number): SequencedEntry[] {
  const entries: SequencedEntry[] = [];
  let expected: number | null = null;
  for (const row of rows) {
    const first = Number(row['first_sequence']);
    if (expected === null ? first > after + 1 : first !== expected) break;
    const unpacked = entriesOf(run.id, row);
    expected = first + unpacked.length;
    for (const entry of unpacked)
      if (entry.sequence > after && entry.sequence <= run.sequence && entries.length < limit) entries.push(entry);
    if (entries.length >= limit) break;
  }
  if (entries.length === 0) {
    throw new JournalCorruptError(
      `The journal of run ${run.id} has a gap after sequence ${after}, though it goes on to ${run.sequence}. Other runs are not affected.`,
      { details: { runId: run.id, after, sequence: run.sequence } },
    );
  }
  return entries;
}

export function* followJournals(
  dialect: Dialect,
  positions: readonly JournalPosition[],
  limit: number,
): Program<JournalNews[]> {
  const given = encodeRows(positions.map(({ runId, after }) => [runId, after]));
  const rows = yield* query(statements(dialect).follow, [given, limit]);
  const news = new Map<string, JournalNews>();
  for (const row of rows) {
    const runId = row['run_id'] as string;
    const found = news.get(runId) ?? { runId, status: row['status'] as RunStatus, entries: [], isComplete: true };
    news.set(runId, found);
    found.entries.push(...entriesOf(runId, row));
  }
  const last = rows.length < limit ? undefined : [...news.values()].at(-1);
  if (last) last.isComplete = false;
  return [...news.values()];
}

function entriesOf(runId: string, row: Row): SequencedEntry[] {
  const first = Number(row['first_sequence']);
  const entries = readable(runId, 'A journal row', () =>
    decodePayload(runId, 'entries', row['entries'] as string),
  ) as JournalEntry[];
  if (!Array.isArray(entries) || entries.length !== Number(row['entry_count'])) {
    throw new JournalCorruptError(
      `The journal row ${first} of run ${runId} does not hold the ${Number(row['entry_count'])} entries it was written with. Other runs are not affected.`,
      { details: { runId, firstSequence: first } },
    );
  }
  return entries.map((entry, index) => ({ ...entry, sequence: first + index }));
}

export function* readSession(dialect: Dialect, sessionId: string): Program<SessionRecord | null> {
  const row = yield* queryOne(statements(dialect).session, [sessionId]);
  return row ? sessionOf(row) : null;
}

export function* countPending(dialect: Dialect, limit: number): Program<number> {
  const row = yield* queryOne(statements(dialect).pending, [limit, limit]);
  return Math.min(limit, Number(row?.['found']));
}
