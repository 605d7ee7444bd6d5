/** Group `overdue`: offenders against I11 and other things nobody came for, for the sweeps. Ids only: each is decided again under its lock. */
import type { OverdueAnswer, OverdueQuery } from '../../contracts/ports/run-store.port.js';
import { RUN_STATUSES, isSettled } from '../../contracts/run-status.js';
import type { Dialect } from './dialect.js';
import { expired, leaseJoin, offered } from './due-runs.js';
import { query, queryOne, type Program, type SqlValue } from './program.js';

const OPEN = RUN_STATUSES.filter((status) => !isSettled(status))
  .map((status) => `'${status}'`)
  .join(', ');

export function* overdueRuns(dialect: Dialect, wanted: OverdueQuery): Program<OverdueAnswer> {
  const { runs, interactions } = dialect.tables;
  const now = Number((yield* queryOne(`SELECT ${dialect.now} AS clock`))?.['clock']);
  const ids = function* (condition: string, params: readonly SqlValue[] = [], join = ''): Program<string[]> {
    const rows = yield* query(
      `SELECT r.id FROM ${runs} r${join} WHERE ${condition} AND r.contract_version <= ? ORDER BY r.created_at, r.id LIMIT ?`,
      [...params, wanted.contractVersion, wanted.limit],
    );
    return rows.map((row) => row['id'] as string);
  };
  return {
    now,
    expired: yield* ids(expired(dialect), [], leaseJoin(dialect)),
    unoffered: yield* unoffered(dialect, wanted, now, ids),
    pastDeadline: yield* ids(`r.deadline_at <= ? AND r.status IN (${OPEN})`, [now]),
    answered: yield* ids(answered(dialect)),
    expiredInteractions: yield* ids(
      `r.id IN (SELECT i.run_id FROM ${interactions} i WHERE i.status = 'pending' AND i.expires_at <= ?)`,
      [now],
    ),
  };
}

type Ids = (condition: string, params?: readonly SqlValue[], join?: string) => Program<string[]>;

/** Claimable since longer than asked, by the moment each status became claimable. */
function* unoffered(dialect: Dialect, wanted: OverdueQuery, now: number, ids: Ids): Program<string[]> {
  const before = now - wanted.unofferedAfterMs;
  const can = wanted.liveOffers.length === 0 ? { sql: '1 = 0', params: [] } : offered(wanted.liveOffers);
  return yield* ids(
    `((r.status = 'pending' AND r.updated_at < ?) ` +
      `OR (r.status = 'retry_wait' AND COALESCE(r.next_attempt_at, r.updated_at) < ? AND COALESCE(r.next_attempt_at, r.updated_at) <= ?) ` +
      `OR (${expired(dialect)} AND COALESCE(w.lease_expires_at, r.updated_at) < ?)) AND NOT ${can.sql}`,
    [before, before, now, before, ...can.params],
    leaseJoin(dialect),
  );
}

/** Waiting for people only, and nobody has anything left to answer. The reasons are a JSON array of closed words, so their text can be searched. */
export function answered(dialect: Dialect): string {
  const others = ['budget', 'child', 'timer', 'signal'].map((reason) => `r.waiting_for NOT LIKE '%"${reason}"%'`);
  return (
    `r.status = 'waiting' AND ${others.join(' AND ')} ` +
    `AND NOT EXISTS (SELECT 1 FROM ${dialect.tables.interactions} i WHERE i.run_id = r.id AND i.status = 'pending')`
  );
}
