/**
 * Group `due`: what a worker's poll asks, in one cheap statement however many runs there are: claimable candidates, the state of the runs it holds, and the
 * clock. A plain read: each candidate is claimed by a transition that decides again under the lock (OWN-1).
 */
import type { Offer } from '../../contracts/agent-definition.js';
import type { DueAnswer, DueQuery } from '../../contracts/ports/run-store.port.js';
import type { RunStatus } from '../../contracts/run-status.js';
import { marks, padded, type Dialect } from './dialect.js';
import { query, type Program, type Row, type SqlValue } from './program.js';

interface Branch {
  sql: string;
  params: SqlValue[];
}

export function* dueRuns(dialect: Dialect, wanted: DueQuery): Program<DueAnswer> {
  const branches = [clock(dialect)];
  if (wanted.limit > 0 && wanted.offers.length > 0) branches.push(...claimable(dialect, wanted));
  if (wanted.held.length > 0) branches.push(held(dialect, wanted.held));
  const rows = yield* query(
    branches.map(({ sql }) => sql).join(' UNION ALL '),
    branches.flatMap(({ params }) => params),
  );
  return {
    now: Number(rows.find((row) => row['what'] === 'clock')?.['number_1']),
    claimable: rows
      .filter((row) => row['what'] === 'claimable')
      .sort(byAge)
      .slice(0, wanted.limit)
      .map((row) => ({ id: row['id'] as string, status: row['status'] as RunStatus })),
    held: rows
      .filter((row) => row['what'] === 'held')
      .map((row) => ({
        id: row['id'] as string,
        status: row['status'] as RunStatus,
        attempt: Number(row['number_1']),
        interruptRequested: Number(row['number_2']) !== 0,
        hasInbox: Number(row['number_3']) !== 0,
      })),
  };
}

/** Whether a run, as `r`, can be executed under one of the offers. */
export function offered(offers: readonly Offer[]): Branch {
  const list = padded(offers);
  return {
    sql: `(${list.map(({ hash }) => `(r.agent = ? AND r.version = ?${hash === null ? '' : ' AND r.definition_hash = ?'})`).join(' OR ')})`,
    params: list.flatMap(({ agent, version, hash }) => (hash === null ? [agent, version] : [agent, version, hash])),
  };
}

function clock(dialect: Dialect): Branch {
  return {
    sql: `SELECT 'clock' AS what, '' AS id, '' AS status, ${dialect.now} AS number_1, 0 AS number_2, 0 AS number_3`,
    params: [],
  };
}

/** One branch per way of being claimable, each walking an index of its own and bounded, so that a long queue costs no more than a short one. */
function claimable(dialect: Dialect, { offers, contractVersion, limit, takeovers }: DueQuery): Branch[] {
  const can = offered(offers);
  const branch = (condition: string, order: string, join = ''): Branch => ({
    sql:
      `SELECT * FROM (SELECT 'claimable' AS what, r.id AS id, r.status AS status, r.created_at AS number_1, 0 AS number_2, 0 AS number_3 FROM ${dialect.tables.runs} r${join} ` +
      `WHERE ${condition} AND ${can.sql} AND r.contract_version <= ? ORDER BY ${order} LIMIT ?) candidates`,
    params: [...can.params, contractVersion, limit],
  });
  const branches = [
    branch(`r.status = 'pending'`, 'r.created_at, r.id'),
    // By due time, which the index has: a storm of backoffs that are not due yet is never read.
    branch(`r.status = 'retry_wait' AND r.next_attempt_at <= ${dialect.now}`, 'r.next_attempt_at, r.id'),
    branch(`r.status = 'retry_wait' AND r.next_attempt_at IS NULL`, 'r.created_at, r.id'),
  ];
  if (takeovers) branches.push(branch(expired(dialect), 'r.created_at, r.id', leaseJoin(dialect)));
  return branches;
}

export function leaseJoin(dialect: Dialect): string {
  return ` LEFT JOIN ${dialect.tables.workers} w ON w.id = r.owner`;
}

/** Running, but the owner's lease is over or its row gone; needs {@link leaseJoin}. */
export function expired(dialect: Dialect): string {
  return `r.status = 'running' AND (w.id IS NULL OR w.lease_expires_at <= ${dialect.now})`;
}

function held(dialect: Dialect, ids: readonly string[]): Branch {
  const { runs, inbox } = dialect.tables;
  const list = padded(ids);
  return {
    sql:
      `SELECT 'held' AS what, r.id AS id, r.status AS status, r.attempt AS number_1, CASE WHEN r.interrupt_request IS NULL THEN 0 ELSE 1 END AS number_2, ` +
      `(SELECT COUNT(*) FROM ${inbox} m WHERE m.run_id = r.id AND m.status = 'queued') AS number_3 FROM ${runs} r WHERE r.id IN (${marks(list.length)})`,
    params: list,
  };
}

function byAge(a: Row, b: Row): number {
  return Number(a['number_1']) - Number(b['number_1']) || ((a['id'] as string) < (b['id'] as string) ? -1 : 1);
}
