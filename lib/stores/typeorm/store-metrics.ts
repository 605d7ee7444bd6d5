/**
 * Group `metrics` (OPS-2): counts without ids or content. Bounded: every scan stops after {@link BOUND} rows, which is then what it tells. Operations are
 * summed from the headers, which carry the number since their last change, and from the last journal rows of the few runs that are running.
 */
import type { StoreMetrics } from '../../contracts/ports/run-store.port.js';
import { RUN_STATUSES, type RunStatus } from '../../contracts/run-status.js';
import { perDialect, type Dialect } from './dialect.js';
import { expired, leaseJoin } from './due-runs.js';
import { answered } from './overdue-runs.js';
import { query, queryOne, type Program } from './program.js';
import { totalsOf } from './run.mapper.js';
import { LAST_ROW, lastRowJoin } from './run-view.js';

/** Rows after which a count stops. */
export const BOUND = 100_000;

const statements = perDialect((dialect) => {
  const { runs, journal, interactions } = dialect.tables;
  const first = (columns: string, from: string) => `(SELECT ${columns} FROM ${from} LIMIT ${BOUND}) bounded`;
  const { now } = dialect;
  return {
    byStatus: `SELECT status, COUNT(*) AS found, SUM(results) AS results FROM ${first('status, results', runs)} GROUP BY status`,
    running: `SELECT r.id AS id, r.results AS results, ${LAST_ROW} FROM ${runs} r ${lastRowJoin(dialect)} WHERE r.status = 'running' LIMIT ${BOUND}`,
    oldest:
      `SELECT MIN(since) AS since, ${now} AS clock FROM (` +
      `SELECT MIN(r.updated_at) AS since FROM ${runs} r WHERE r.status = 'pending' ` +
      `UNION ALL SELECT MIN(COALESCE(r.next_attempt_at, r.updated_at)) FROM ${runs} r WHERE r.status = 'retry_wait' AND COALESCE(r.next_attempt_at, r.updated_at) <= ${now} ` +
      `UNION ALL SELECT MIN(COALESCE(w.lease_expires_at, r.updated_at)) FROM ${runs} r${leaseJoin(dialect)} WHERE ${expired(dialect)}) claimable`,
    interactions: `SELECT COUNT(*) AS found FROM ${first('1 AS one', `${interactions} WHERE status = 'pending'`)}`,
    journal: `SELECT COUNT(*) AS found, SUM(bytes) AS bytes FROM ${first(`${dialect.bytesOf('entries')} AS bytes`, journal)}`,
    expired: `SELECT COUNT(*) AS found FROM ${runs} r${leaseJoin(dialect)} WHERE ${expired(dialect)}`,
    answered: `SELECT COUNT(*) AS found FROM ${runs} r WHERE ${answered(dialect)}`,
  };
});

export function* readMetrics(dialect: Dialect): Program<StoreMetrics> {
  const sql = statements(dialect);
  const runsByStatus = Object.fromEntries(RUN_STATUSES.map((status) => [status, 0])) as Record<RunStatus, number>;
  let operations = 0;
  for (const row of yield* query(sql.byStatus)) {
    runsByStatus[row['status'] as RunStatus] = Number(row['found']);
    operations += Number(row['results']);
  }
  for (const row of yield* query(sql.running)) operations += totalsOf(row).results - Number(row['results']);
  const oldest = yield* queryOne(sql.oldest);
  const since = oldest?.['since'] ?? null;
  const journal = yield* queryOne(sql.journal);
  return {
    runsByStatus,
    oldestClaimableMs: since === null ? null : Math.max(0, Number(oldest?.['clock']) - Number(since)),
    openInteractions: yield* count(sql.interactions),
    operations,
    journalRows: Number(journal?.['found']),
    journalBytes: Number(journal?.['bytes'] ?? 0),
    offenders: (yield* count(sql.expired)) + (yield* count(sql.answered)),
  };
}

function* count(sql: string): Program<number> {
  return Number((yield* queryOne(sql))?.['found']);
}
