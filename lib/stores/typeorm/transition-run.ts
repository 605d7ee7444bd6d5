import type { InboxMessage, Interaction } from '../../contracts/interaction.js';
import type {
  LockedRun,
  RunWrite,
  TransitionDecision,
  TransitionRequest,
  TransitionResult,
} from '../../contracts/ports/run-store.port.js';
import { requireSettledStays, unlockedChange } from '../../contracts/store-rules.js';
import type { RunRecord, SessionChange } from '../../contracts/run.js';
import { BrokenStoreError } from '../../errors/store.errors.js';
import { detached } from '../codec/payload-codec.js';
import {
  answeredSince,
  asksAfter,
  INBOX_COLUMNS,
  inboxMessageOf,
  INTERACTION_COLUMNS,
  interactionOf,
  putInteraction,
  putMessage,
} from './interactions.js';
import { namesOf, numberIn, valuesOf } from './rows.js';
import { perDialect, type Dialect } from './dialect.js';
import { insertJournalRow, type Committed, type WrittenRow } from './journal-rows.js';
import { query, queryOne, write, type Program, type Row, type BatchedStatement } from './program.js';
import { changedColumns, leaseOf, lockedRunOf, runView, sessionOf, totalsText } from './runs.js';
import { batched, parameter, type ParameterType, type BatchSql } from './batch-sql.js';
import { SESSIONS } from './tables.js';

const SESSION_COLUMNS = namesOf(SESSIONS.columns).join(', ');
const UNUSED = `status NOT IN ('used', 'cancelled')`;

const statements = perDialect((dialect) => {
  const { batchSql } = dialect;
  const { runs, sessions, interactions, inbox, journal } = dialect.tables;
  // Most runs have neither asks nor messages: their numbers save two statements.
  const numbers = [
    'r.answered_since AS answered_since',
    `(SELECT COUNT(*) FROM ${interactions} i WHERE i.run_id = r.id AND ${UNUSED}) AS asks`,
    `(SELECT MAX(m.position) FROM ${inbox} m WHERE m.run_id = r.id) AS last_message`,
  ];
  const lockBatched = batched(
    batchSql,
    (its) => `SELECT v.place AS place FROM ${givenRuns(dialect, its)}${its.lockOrSkip}`,
  );
  return {
    sessionOf: `SELECT session_id FROM ${runs} WHERE id = ?`,
    lockSession: `SELECT ${SESSION_COLUMNS} FROM ${sessions} WHERE id = ?${dialect.forUpdate}`,
    lockSessionOrSkip: `SELECT ${SESSION_COLUMNS} FROM ${sessions} WHERE id = ?${dialect.forUpdateSkipLocked}`,
    lockRun: `SELECT id FROM ${runs} WHERE id = ?${dialect.forUpdate}`,
    lockRunOrSkip: `SELECT id FROM ${runs} WHERE id = ?${dialect.forUpdateSkipLocked}`,
    // Without a lock: InnoDB locks all that it walks over, which may be the queued runs of other sessions.
    next: `SELECT id FROM ${runs}${dialect.indexHint('agent_runs_session')} WHERE session_id = ? AND status = 'queued' AND id <> ? ORDER BY session_order LIMIT 1`,
    sessionOfBatched: batched(
      batchSql,
      (its) => `SELECT v.place AS place, r.session_id FROM ${givenRuns(dialect, its)}`,
    ),
    lockRunBatched: lockBatched,
    lockRunOrSkipBatched: lockBatched && ({ ...lockBatched, orNone: true } satisfies BatchedStatement),
    run: `${runView(dialect, numbers)} WHERE r.id = ?`,
    runBatched: batched(batchSql, (its) => runView(dialect, ['v.place AS place', ...numbers], givenRuns(dialect, its))),
    interactions: `SELECT ${INTERACTION_COLUMNS.join(', ')} FROM ${interactions} WHERE run_id = ? AND ${UNUSED} ORDER BY created_at, place, id`,
    queued: `SELECT ${INBOX_COLUMNS.join(', ')} FROM ${inbox} WHERE run_id = ? AND status = 'queued' ORDER BY position`,
    message: `SELECT ${INBOX_COLUMNS.join(', ')} FROM ${inbox} WHERE run_id = ? AND request_id = ?`,
    setAnswered: `UPDATE ${runs} SET answered_since = ? WHERE id = ?`,
    setTotals: `UPDATE ${journal} SET totals = ? WHERE run_id = ? AND first_sequence = ?`,
  };
});

/** The runs of several programs as `r`, by their ids. */
function givenRuns({ tables }: Dialect, { given, joined }: BatchSql): string {
  return `${given(['key'])} ${joined(tables.runs)} ON r.id = v.p1`;
}

interface Locked {
  shown: LockedRun;
  answeredSince: number | null;
  /** First sequence of the run's last journal row; null before the first. */
  lastFirst: number | null;
  nextLastFirst: number | null;
}

/**
 * Group `transition`: everything that changes a run except the appends of its owner. Locks in one order, session, run, next run of the session;
 * reads what the decider is shown in later statements; then writes what it was told. Settled runs are left only as the transition table allows (I4), a decision binds
 * once (I7), and the run's header is changed by one UPDATE that must hit one row.
 */
export function* transitionRun<T>(
  dialect: Dialect,
  request: TransitionRequest<T>,
): Program<Committed<TransitionResult<T>>> {
  const locked = yield* lock(dialect, request);
  if (locked === 'not_found' || locked === 'busy') return { value: { outcome: locked }, row: null };
  const { shown } = locked;
  const { now } = shown;
  // What was read, for the writes: the decider may change what it is shown.
  const before = { ...shown.run };
  const next = shown.nextInSession && { ...shown.nextInSession };
  const asks = shown.interactions.map((ask) => ({ ...ask }));
  const sessionId = shown.session?.id;
  const decision = request.decide(shown);
  checkShown(decision, { hasSession: sessionId !== undefined, hasNext: next !== null });
  const answered = answeredAfter(locked.answeredSince, before, asks, decision, now);
  const { value: run, row } = decision.run
    ? yield* writeRun(dialect, { run: before, lastFirst: locked.lastFirst, answered }, decision.run, now)
    : { value: before, row: null };
  if (answered !== locked.answeredSince && run.revision === before.revision)
    yield* write(statements(dialect).setAnswered, [answered, run.id]);
  if (decision.session && sessionId !== undefined) yield* changeSession(dialect, sessionId, decision.session);
  if (decision.nextInSession && next)
    yield* writeRun(
      dialect,
      { run: next, lastFirst: locked.nextLastFirst, answered: null },
      decision.nextInSession,
      now,
    );
  for (const interaction of decision.interactions ?? []) yield* putInteraction(dialect, interaction);
  for (const message of decision.inbox ?? []) yield* putMessage(dialect, message);
  return { value: { outcome: 'done', result: decision.result, run }, row };
}

/** Who has been answered stays so from the first moment on. */
function answeredAfter<T>(
  since: number | null,
  run: RunRecord,
  asks: readonly Interaction[],
  decision: TransitionDecision<T>,
  now: number,
): number | null {
  const { status = run.status, waitingFor = run.waitingFor } = decision.run?.change ?? {};
  const until = answeredSince({ status, waitingFor }, asksAfter(asks, decision.interactions), now);
  return until === null ? null : (since ?? until);
}

function* lock<T>(dialect: Dialect, request: TransitionRequest<T>): Program<Locked | 'not_found' | 'busy'> {
  const { runId, skipLocked = false } = request;
  const sql = statements(dialect);
  let session: Row | undefined;
  if (request.session === true) {
    // Which session a run belongs to never changes, so it may be read before the lock.
    const header = yield* queryOne(sql.sessionOf, [runId]);
    if (!header) return 'not_found';
    if (header['session_id'] !== null) {
      session = yield* queryOne(skipLocked ? sql.lockSessionOrSkip : sql.lockSession, [header['session_id'] as string]);
      if (!session && skipLocked) return 'busy';
    }
  }
  if (dialect.hasRowLocks) {
    const held = skipLocked
      ? yield* queryOne(sql.lockRunOrSkip, [runId], sql.lockRunOrSkipBatched)
      : yield* queryOne(sql.lockRun, [runId], sql.lockRunBatched);
    if (!held)
      return skipLocked && (yield* queryOne(sql.sessionOf, [runId], sql.sessionOfBatched)) ? 'busy' : 'not_found';
  }
  const row = yield* queryOne(sql.run, [runId], sql.runBatched);
  if (!row) return 'not_found';
  const run = lockedRunOf(row);
  const nextRow = session ? yield* lockNext(dialect, session['id'] as string, runId) : undefined;
  const shown: LockedRun = {
    now: Number(row['clock']),
    run,
    lease: leaseOf(run, row),
    interactions: (Number(row['asks']) > 0 ? yield* query(sql.interactions, [runId]) : []).map(interactionOf),
    inbox: row['last_message'] === null ? [] : yield* readInbox(dialect, request),
    lastMessageOrder: Number(row['last_message'] ?? 0),
    session: session ? sessionOf(session) : null,
    nextInSession: nextRow ? lockedRunOf(nextRow) : null,
  };
  return {
    shown,
    answeredSince: numberIn(row, 'answered_since'),
    lastFirst: lastFirstOf(row),
    nextLastFirst: nextRow ? lastFirstOf(nextRow) : null,
  };
}

function* readInbox(
  dialect: Dialect,
  { runId, inboxRequestId }: Pick<TransitionRequest<never>, 'runId' | 'inboxRequestId'>,
): Program<InboxMessage[]> {
  const { queued, message } = statements(dialect);
  const rows =
    inboxRequestId === undefined ? yield* query(queued, [runId]) : yield* query(message, [runId, inboxRequestId]);
  return rows.map(inboxMessageOf);
}

/** Runs get in line and leave it under the lock of their session, which is held: nobody changes which one is next. */
function* lockNext(dialect: Dialect, sessionId: string, runId: string): Program<Row | undefined> {
  const sql = statements(dialect);
  const next = yield* queryOne(sql.next, [sessionId, runId]);
  if (!next) return undefined;
  const id = next['id'] as string;
  if (dialect.hasRowLocks) yield* queryOne(sql.lockRun, [id]);
  return yield* queryOne(sql.run, [id]);
}

function lastFirstOf(row: Row): number | null {
  return row['last_first'] === null ? null : Number(row['last_first']);
}

function checkShown<T>(decision: TransitionDecision<T>, shown: { hasSession: boolean; hasNext: boolean }): void {
  if (decision.session && !shown.hasSession) throw unlockedChange('a session');
  if (decision.nextInSession && !shown.hasNext) throw unlockedChange('a next run of the session');
}

/** A run as it was read under the lock, and what its row shall say of its asks. */
interface LockedRow {
  run: RunRecord;
  lastFirst: number | null;
  answered: number | null;
}

/** @returns the run as after the write, detached from what the decider holds */
function* writeRun(
  dialect: Dialect,
  { run, lastFirst, answered }: LockedRow,
  { change, entries, totals }: RunWrite,
  now: number,
): Program<Committed<RunRecord>> {
  requireSettledStays(run, change);
  const after = { ...run, ...detached(change), totals: detached(totals ?? run.totals) } as RunRecord;
  const columns = changedColumns(run.id, change);
  if (columns.length > 0) {
    after.revision = run.revision + 1;
    after.updatedAt = now;
    const { sql, shared } = updateOf(dialect, columns);
    const matched = yield* write(
      sql,
      [...columns.map(({ value }) => value), after.revision, now, after.totals.results, answered, run.id, run.revision],
      shared,
    );
    if (matched !== 1) {
      throw new BrokenStoreError(
        `A locked run was changed by somebody else: the update of ${run.id} hit ${matched} rows instead of 1.`,
        { details: { runId: run.id } },
      );
    }
  }
  let row: WrittenRow | null = null;
  if (entries.length > 0) {
    row = yield* insertJournalRow(dialect, run.id, run.sequence + 1, after.attempt, entries, after.totals);
    after.sequence = run.sequence + entries.length;
  } else if (totals && lastFirst !== null) {
    yield* write(statements(dialect).setTotals, [totalsText(totals), run.id, lastFirst]);
  }
  return { value: after, row };
}

const updates = perDialect(() => new Map<string, Update>());

interface Update {
  readonly sql: string;
  readonly shared: BatchedStatement | undefined;
}

type Column = Readonly<{ name: string; holds: ParameterType }>;

/** Follow the changed columns. */
const WRITTEN_ALWAYS: readonly Column[] = ['revision', 'updated_at', 'results', 'answered_since'].map((name) => ({
  name,
  holds: 'number',
}));

/** Sets these columns of a run by its id and its revision. Few sets of columns are ever changed together. */
function updateOf(dialect: Dialect, changed: readonly Column[]): Update {
  const known = updates(dialect);
  const key = changed.map(({ name }) => name).join();
  const update = known.get(key) ?? buildUpdate(dialect, [...changed, ...WRITTEN_ALWAYS]);
  known.set(key, update);
  return update;
}

function buildUpdate({ batchSql, tables }: Dialect, columns: readonly Column[]): Update {
  const holds: ParameterType[] = [...columns.map((column) => column.holds), 'key', 'number'];
  return {
    sql: `UPDATE ${tables.runs} SET ${columns.map(({ name }) => `${name} = ?`).join(', ')} WHERE id = ? AND revision = ?`,
    shared: batched(batchSql, ({ update, given }) =>
      update(
        tables.runs,
        given(holds),
        columns.map(({ name }, index) => `${name} = ${parameter(index)}`),
        `r.id = ${parameter(columns.length)} AND r.revision = ${parameter(columns.length + 1)}`,
      ),
    ),
  };
}

function* changeSession(dialect: Dialect, sessionId: string, change: SessionChange): Program<void> {
  const columns = SESSIONS.columns.filter(({ property }) => change[property as keyof SessionChange] !== undefined);
  if (columns.length === 0) return;
  const sets = columns.map(({ name }) => `${name} = ?`).join(', ');
  const values = valuesOf(columns, '', change);
  yield* write(`UPDATE ${dialect.tables.sessions} SET ${sets} WHERE id = ?`, [...values, sessionId]);
}
