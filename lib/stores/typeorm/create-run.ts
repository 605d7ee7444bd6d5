import type { CreateRequest, CreateResult, CreateSituation } from '../../contracts/ports/run-store.port.js';
import type { RunRecord, SessionRecord } from '../../contracts/run.js';
import { takenRun } from '../../contracts/store-rules.js';
import { detached } from '../codec/payload-codec.js';
import { answeredSince } from './interactions.js';
import { heldBy, metadataRows, namesOf, valuesOf } from './rows.js';
import { perDialect, type Dialect } from './dialect.js';
import { insertJournalRow, type Committed } from './journal-rows.js';
import { LostRaceError } from './database-failure.js';
import { insertIgnore, query, queryOne, write, type Program, type Row } from './program.js';
import { recordView, runOf, runRow, sessionOf } from './runs.js';
import { batched, batchedInsert, type BatchSql } from './batch-sql.js';
import { RUNS, SESSIONS } from './tables.js';

const INSERTED = RUNS.columns.map((column) => ({ name: column.name, holds: heldBy(column) }));
const SESSION_COLUMNS = namesOf(SESSIONS.columns);

const statements = perDialect((dialect) => ({
  lockSession: `SELECT ${SESSION_COLUMNS.join(', ')} FROM ${dialect.tables.sessions} WHERE id = ?${dialect.forUpdate}`,
  session: `SELECT ${SESSION_COLUMNS.join(', ')} FROM ${dialect.tables.sessions} WHERE id = ?`,
  same: sameWithClock(dialect),
  insertSession: dialect.insertOrLock(dialect.tables.sessions, SESSION_COLUMNS, 'last_order'),
  updateSession: `UPDATE ${dialect.tables.sessions} SET ${SESSION_COLUMNS.slice(1)
    .map((name) => `${name} = ?`)
    .join(', ')} WHERE id = ?`,
  insertRun: dialect.insertIgnore(dialect.tables.runs, namesOf(RUNS.columns)),
  insertRunBatched: batchedInsert(dialect.batchSql, dialect.tables.runs, INSERTED),
  insertMetadata: `INSERT INTO ${dialect.tables.metadata} (run_id, name, value, created_at) VALUES (?, ?, ?, ?)`,
  insertMetadataBatched: batchedInsert(dialect.batchSql, dialect.tables.metadata, [
    { name: 'run_id', holds: 'key' },
    { name: 'name', holds: 'key' },
    { name: 'value', holds: 'text' },
    { name: 'created_at', holds: 'number' },
  ]),
  sameBatched: batched(dialect.batchSql, (batchSql) => nothingIsSame(dialect, batchSql)),
}));

/** The clock, and beside it the runs that have the id or the request already; one row without a run where there are none. */
function sameWithClock(dialect: Dialect): string {
  const same = `${recordView(dialect)} WHERE r.id = ? OR (r.request_scope = ? AND r.request_id = ?)`;
  return `SELECT c.clock, s.* FROM (SELECT ${dialect.now} AS clock) c LEFT JOIN (${same}) s ON 1 = 1`;
}

/**
 * The clock for those whose id and request nobody has; the others look alone. Counted, because MariaDB would answer a NOT EXISTS by reading the whole table.
 */
function nothingIsSame({ tables, now }: Dialect, { given }: BatchSql): string {
  const none = (condition: string): string => `(SELECT COUNT(*) FROM ${tables.runs} r WHERE ${condition}) = 0`;
  return (
    `SELECT v.place AS place, ${now} AS clock, NULL AS id FROM ${given(['key', 'key', 'key'])} ` +
    `WHERE ${none('r.id = v.p1')} AND ${none('r.request_scope = v.p2 AND r.request_id = v.p3')}`
  );
}

/** Where a run is created: in a transaction of ours, or in one of the host's, where a race may have been lost before. */
export type CreatePlace = 'own' | 'host' | 'host after a race';

/**
 * Group `create`: a run, its first entries and its session's row, in one transaction. The session's row is locked first, so the order of a session is
 * decided here; a request id that somebody else commits at the same moment is a lost race, after which everything is read and decided again.
 * In a transaction of the host the isolation level is the host's: nothing that is not there is read with a lock, and what others have committed since its
 * snapshot is looked for outside of it.
 */
export function* createRun(
  dialect: Dialect,
  request: CreateRequest,
  place: CreatePlace = 'own',
): Program<Committed<CreateResult>> {
  const session = yield* lockSession(dialect, request.sessionId, place);
  // After the session's lock was granted: at READ COMMITTED a later statement sees what the holder committed (decision lock-first-read-later).
  const situation = yield* readSituation(dialect, request, session);
  const decision = request.decide(situation);
  if (decision.do !== 'insert') return { value: { run: decision.run, created: false }, row: null };
  const { entries, totals } = decision;
  const run: RunRecord = { ...decision.run, revision: 1, sequence: entries.length, totals };
  const sql = statements(dialect);
  if (decision.session) yield* putSession(dialect, decision.session, situation.session !== null);
  const isNew = yield* insertIgnore(
    sql.insertRun,
    runRow(run, { results: totals.results, answeredSince: answeredSince(run, [], situation.now) }),
    sql.insertRunBatched,
  );
  if (!isNew) throw taken(run, situation);
  const row = entries.length > 0 ? yield* insertJournalRow(dialect, run.id, 1, run.attempt, entries, totals) : null;
  for (const values of metadataRows(run)) yield* write(sql.insertMetadata, values, sql.insertMetadataBatched);
  return { value: { run: detached(run), created: true }, row };
}

/**
 * What becomes of a request whose run somebody else has committed, as seen from outside of the host's transaction; null where nobody has.
 * @throws what the decider refuses with
 */
export function* createdMeanwhile(dialect: Dialect, request: CreateRequest): Program<Committed<CreateResult> | null> {
  const { sessionId } = request;
  const session = sessionId === null ? undefined : yield* queryOne(statements(dialect).session, [sessionId]);
  const situation = yield* readSituation(dialect, request, session);
  if (!situation.sameId && !situation.sameRequest) return null;
  const decision = request.decide(situation);
  if (decision.do === 'insert') throw taken(decision.run, situation);
  return { value: { run: decision.run, created: false }, row: null };
}

function* lockSession(dialect: Dialect, sessionId: string | null, place: CreatePlace): Program<Row | undefined> {
  if (sessionId === null) return undefined;
  const sql = statements(dialect);
  // One that the snapshot does not have yet is found by the INSERT, which loses the race then.
  if (place === 'host' && dialect.locksAbsentRows && !(yield* queryOne(sql.session, [sessionId]))) return undefined;
  return yield* queryOne(sql.lockSession, [sessionId]);
}

function* readSituation(
  dialect: Dialect,
  { runId, requestScope, requestId }: CreateRequest,
  session: Row | undefined,
): Program<CreateSituation> {
  const rows = yield* query(
    statements(dialect).same,
    [runId, requestScope, requestId],
    statements(dialect).sameBatched,
  );
  const same = rows.filter((row) => row['id'] !== null).map(runOf);
  return {
    now: Number(rows[0]?.['clock']),
    session: session ? sessionOf(session) : null,
    sameRequest: same.find((run) => run.requestScope === requestScope && run.requestId === requestId) ?? null,
    sameId: same.find((run) => run.id === runId) ?? null,
  };
}

function* putSession(dialect: Dialect, session: SessionRecord, exists: boolean): Program<void> {
  const sql = statements(dialect);
  const [id = null, ...values] = valuesOf(SESSIONS.columns, '', session);
  if (exists) yield* write(sql.updateSession, [...values, id]);
  else if (!(yield* insertIgnore(sql.insertSession, [id, ...values]))) throw new LostRaceError();
}

/** A run of this id or request that the decider was shown is its mistake; one that came in between is a lost race. */
function taken(run: RunRecord, { sameId, sameRequest }: CreateSituation): Error {
  const existing = sameId ?? sameRequest;
  return existing ? takenRun(run, existing) : new LostRaceError();
}
