import { isOffered } from '../../contracts/agent-definition.js';
import type { OverdueAnswer, OverdueQuery } from '../../contracts/ports/run-store.port.js';
import { isSettled, RUN_STATUSES } from '../../contracts/run-status.js';
import type { Dialect } from './dialect.js';
import { expired, leaseJoin, offered } from './due-runs.js';
import { firstRows } from './filter.js';
import { type Program, query, queryOne, type SqlValue } from './program.js';

/**
 * Group `overdue`: offenders against I11 and other things nobody came for, for the sweeps. Ids only: each is decided again under its lock. Every kind is found by
 * an index that leads to offenders alone, so a sweep that finds nothing reads nothing, however many runs wait rightly.
 */
const OPEN = RUN_STATUSES.filter((status) => !isSettled(status));

export function* overdueRuns(dialect: Dialect, wanted: OverdueQuery): Program<OverdueAnswer> {
  const now = Number((yield* queryOne(`SELECT ${dialect.now} AS clock`))?.['clock']);
  const oldest = 'r.created_at, r.id';
  return {
    now,
    expired: yield* find(dialect, wanted, { where: expired(dialect), join: leaseJoin(dialect), order: oldest }),
    unoffered: yield* unoffered(dialect, wanted, now),
    pastDeadline: yield* pastDeadline(dialect, wanted, now),
    answered: yield* find(dialect, wanted, {
      where: ANSWERED,
      order: 'r.answered_since',
      index: 'agent_runs_answered',
    }),
    expiredInteractions: yield* withExpiredAsks(dialect, wanted, now),
  };
}

/** Waiting for people only, and nobody has anything left to answer; see `answered-since.ts`. */
export const ANSWERED = 'r.answered_since IS NOT NULL';

interface Search {
  where: string;
  params?: readonly SqlValue[];
  order: string;
  index?: string;
  join?: string;
}

function* find(
  dialect: Dialect,
  { contractVersion, limit }: Pick<OverdueQuery, 'contractVersion' | 'limit'>,
  { where, params = [], order, index, join = '' }: Search,
): Program<string[]> {
  const from = `${dialect.tables.runs} r${index === undefined ? '' : dialect.indexHint(index)}${join}`;
  const rows = yield* query(
    `SELECT r.id AS id FROM ${from} WHERE ${where} AND r.contract_version <= ? ORDER BY ${order} LIMIT ?`,
    [...params, contractVersion, limit],
  );
  return rows.map((row) => row['id'] as string);
}

/** Claimable since longer than asked, by the moment each status became claimable. */
function* unoffered(dialect: Dialect, wanted: OverdueQuery, now: number): Program<string[]> {
  const before = now - wanted.unofferedAfterMs;
  const order = 'r.created_at, r.id';
  const found: string[] = [];
  const look = function* (search: Omit<Search, 'order'>): Program<void> {
    if (found.length < wanted.limit)
      found.push(...(yield* find(dialect, { ...wanted, limit: wanted.limit - found.length }, { ...search, order })));
  };
  for (const status of ['pending', 'retry_wait'] as const) {
    const since = status === 'pending' ? 'r.updated_at' : 'COALESCE(r.next_attempt_at, r.updated_at)';
    for (const kind of yield* claimableKinds(dialect, status)) {
      if (isOffered(kind, wanted.liveOffers)) continue;
      yield* look({
        where: `r.status = '${status}' AND r.agent = ? AND r.version = ? AND r.definition_hash = ? AND ${since} < ?`,
        params: [kind.agent, kind.version, kind.definitionHash, before],
        index: 'agent_runs_queue',
      });
    }
  }
  const can = wanted.liveOffers.length === 0 ? { sql: '1 = 0', params: [] } : offered(wanted.liveOffers);
  yield* look({
    where: `${expired(dialect)} AND COALESCE(w.lease_expires_at, r.updated_at) < ? AND NOT ${can.sql}`,
    params: [before, ...can.params],
    join: leaseJoin(dialect),
  });
  return found;
}

function* pastDeadline({ tables, indexHint }: Dialect, wanted: OverdueQuery, now: number): Program<string[]> {
  const selections = OPEN.map((status) => ({
    sql: `SELECT r.id AS id, r.deadline_at AS deadline_at FROM ${tables.runs} r${indexHint('agent_runs_deadline')} WHERE r.status = '${status}' AND r.deadline_at <= ? AND r.contract_version <= ?`,
    params: [now, wanted.contractVersion],
  }));
  const { sql, params } = firstRows(selections, { within: 'r.deadline_at', byName: 'deadline_at' }, wanted.limit);
  return (yield* query(sql, params)).map((row) => row['id'] as string);
}

function* withExpiredAsks({ tables, indexHint }: Dialect, wanted: OverdueQuery, now: number): Program<string[]> {
  // A sub-select and no join, which Postgres may begin with all runs.
  const contract = `(SELECT r.contract_version FROM ${tables.runs} r WHERE r.id = i.run_id)`;
  const rows = yield* query(
    `SELECT i.run_id AS id FROM ${tables.interactions} i${indexHint('agent_run_interactions_expiry')} ` +
      `WHERE i.status = 'pending' AND i.expires_at <= ? AND ${contract} <= ? ORDER BY i.expires_at LIMIT ?`,
    [now, wanted.contractVersion, wanted.limit],
  );
  // Each run once, however many of its asks have expired.
  return [...new Set(rows.map((row) => row['id'] as string))];
}

/**
 * Which kinds of runs (agent, version, definition) wait for a worker. There are few kinds however many runs wait: an index is asked for the first kind, then for
 * the one after it, and so on.
 */
export interface RunKind {
  readonly agent: string;
  readonly version: string;
  readonly definitionHash: string;
}

export function* claimableKinds(dialect: Dialect, status: 'pending' | 'retry_wait'): Program<RunKind[]> {
  const kinds: RunKind[] = [];
  for (let kind = yield* kindAfter(dialect, status, null); kind; kind = yield* kindAfter(dialect, status, kind))
    kinds.push(kind);
  return kinds;
}

/** The next hash, else the next version, else the next agent: three looks, because not every database finds the place after a triple in an index. */
function* kindAfter({ tables, indexHint }: Dialect, status: string, last: RunKind | null): Program<RunKind | null> {
  const first = (condition: string): string =>
    `SELECT * FROM (SELECT r.agent AS agent, r.version AS version, r.definition_hash AS hash FROM ${tables.runs} r${indexHint('agent_runs_queue')} ` +
    `WHERE r.status = '${status}'${condition} ORDER BY r.agent, r.version, r.definition_hash LIMIT 1) next_one`;
  const looks = last
    ? [
        ' AND r.agent = ? AND r.version = ? AND r.definition_hash > ?',
        ' AND r.agent = ? AND r.version > ?',
        ' AND r.agent > ?',
      ]
    : [''];
  const { agent = '', version = '', definitionHash = '' } = last ?? {};
  const row = yield* queryOne(
    `SELECT * FROM (${looks.map(first).join(' UNION ALL ')}) next_ones ORDER BY agent, version, hash LIMIT 1`,
    last ? [agent, version, definitionHash, agent, version, agent] : [],
  );
  if (!row) return null;
  return {
    agent: row['agent'] as string,
    version: row['version'] as string,
    definitionHash: row['hash'] as string,
  };
}
