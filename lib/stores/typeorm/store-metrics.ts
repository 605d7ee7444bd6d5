import type { StoreMetrics } from '../../contracts/ports/run-store.port.js';
import { RUN_STATUSES, type RunStatus } from '../../contracts/run-status.js';
import { perDialect, type Dialect } from './dialect.js';
import { expired, leaseJoin } from './due-runs.js';
import { ANSWERED } from './overdue-runs.js';
import { query, queryOne, type Program } from './program.js';
import { LAST_ROW, lastRowJoin, totalsOf } from './runs.js';

/** Rows of a kind after which a count stops. */
export const BOUND = 10_000;
/** Pending runs among which the one that has waited longest is looked for: those that were created first. */
const OLDEST = 1_000;

const statements = perDialect((dialect) => {
  const { runs, journal, interactions } = dialect.tables;
  const { now } = dialect;
  const byStatus = `${runs}${dialect.indexHint('agent_runs_status')}`;
  // Each status by itself: of all runs together, those that were settled long ago would be counted and the open ones never reached.
  const counted = (status: RunStatus): string =>
    `SELECT '${status}' AS status, COUNT(*) AS found, SUM(results) AS results FROM ` +
    `(SELECT results FROM ${byStatus} WHERE status = '${status}' ORDER BY created_at, id LIMIT ${BOUND}) bounded`;
  const oldest = [
    `SELECT MIN(since) AS since FROM (SELECT updated_at AS since FROM ${byStatus} WHERE status = 'pending' ORDER BY created_at, id LIMIT ${OLDEST}) first_ones`,
    `SELECT MIN(next_attempt_at) FROM ${runs} WHERE status = 'retry_wait' AND next_attempt_at <= (SELECT ${now})`,
    `SELECT MIN(updated_at) FROM ${runs} WHERE status = 'retry_wait' AND next_attempt_at IS NULL`,
    `SELECT MIN(COALESCE(w.lease_expires_at, r.updated_at)) FROM ${runs} r${leaseJoin(dialect)} WHERE ${expired(dialect)}`,
  ];
  const upTo = (from: string): string =>
    `SELECT COUNT(*) AS found FROM (SELECT 1 AS one FROM ${from} LIMIT ${BOUND}) bounded`;
  return {
    byStatus: RUN_STATUSES.map(counted).join(' UNION ALL '),
    running: `SELECT r.id AS id, r.results AS results, ${LAST_ROW} FROM ${runs} r ${lastRowJoin(dialect)} WHERE r.status = 'running' LIMIT ${BOUND}`,
    oldest: `SELECT MIN(since) AS since, ${now} AS clock FROM (${oldest.join(' UNION ALL ')}) claimable`,
    interactions: upTo(`${interactions}${dialect.indexHint('agent_run_interactions_expiry')} WHERE status = 'pending'`),
    journal:
      `SELECT COUNT(*) AS found, SUM(bytes) AS bytes FROM ` +
      `(SELECT ${dialect.bytesOf('entries')} AS bytes FROM ${journal} ORDER BY run_id, first_sequence LIMIT ${BOUND}) bounded`,
    rows: dialect.estimatedRows('agent_run_journal'),
    expired: upTo(`${runs} r${leaseJoin(dialect)} WHERE ${expired(dialect)}`),
    answered: upTo(`${runs} r WHERE ${ANSWERED}`),
  };
});

/**
 * Group `metrics`: counts without ids or content. Bounded: a count stops after {@link BOUND} rows of a kind, which is then what it tells; what it tells of a
 * longer journal is the server's estimate. Operations are summed from the headers, which carry the number since their last change, and from the last journal rows
 * of the few runs that are running.
 */
export function* readMetrics(dialect: Dialect): Program<StoreMetrics> {
  const sql = statements(dialect);
  const runsByStatus = Object.fromEntries(RUN_STATUSES.map((status) => [status, 0])) as Record<RunStatus, number>;
  let operations = 0;
  for (const row of yield* query(sql.byStatus)) {
    runsByStatus[row['status'] as RunStatus] = Number(row['found']);
    operations += Number(row['results'] ?? 0);
  }
  for (const row of yield* query(sql.running)) operations += totalsOf(row).results - Number(row['results']);
  const oldest = yield* queryOne(sql.oldest);
  const since = oldest?.['since'] ?? null;
  return {
    runsByStatus,
    oldestClaimableMs: since === null ? null : Math.max(0, Number(oldest?.['clock']) - Number(since)),
    openInteractions: yield* count(sql.interactions),
    operations,
    ...(yield* journalSize(dialect)),
    offenders: (yield* count(sql.expired)) + (yield* count(sql.answered)),
  };
}

/** Counted, or beyond the bound estimated: rows by the server's statistics, bytes by the average of those that were counted. */
function* journalSize(dialect: Dialect): Program<Pick<StoreMetrics, 'journalRows' | 'journalBytes'>> {
  const sql = statements(dialect);
  const counted = yield* queryOne(sql.journal);
  const rows = Number(counted?.['found']);
  const bytes = Number(counted?.['bytes'] ?? 0);
  if (rows < BOUND) return { journalRows: rows, journalBytes: bytes };
  const estimate = Math.max(rows, yield* count(sql.rows));
  return { journalRows: estimate, journalBytes: Math.round((bytes / rows) * estimate) };
}

function* count(sql: string): Program<number> {
  return Number((yield* queryOne(sql))?.['found']);
}
