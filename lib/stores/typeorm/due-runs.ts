import { offerText, type Offer } from '../../contracts/agent-definition.js';
import type { DueAnswer, DueQuery } from '../../contracts/ports/run-store.port.js';
import type { RunStatus } from '../../contracts/run-status.js';
import { placeholders, padded, type Dialect } from './dialect.js';
import type { Fragment } from './filter.js';
import { query, type Program, type Row } from './program.js';

/** Offers that one statement asks for; SQLite takes 500 selections in one. */
const OFFERS_AT_ONCE = 100;

/**
 * Group `due`: what a worker's poll asks, in one cheap statement however many runs there are: claimable candidates, the state of the runs it holds, and the
 * clock. A plain read: each candidate is claimed by a transition that decides again under the lock.
 */
export function* dueRuns(dialect: Dialect, wanted: DueQuery): Program<DueAnswer> {
  const offers = distinct(wanted.offers);
  const branches = [clock(dialect)];
  if (wanted.limit > 0 && offers.length > 0) branches.push(...claimable(dialect, wanted, offers));
  if (wanted.held.length > 0) branches.push(held(dialect, wanted.held));
  const rows = [...(yield* ask(branches))];
  for (let from = OFFERS_AT_ONCE; wanted.limit > 0 && from < offers.length; from += OFFERS_AT_ONCE)
    rows.push(...(yield* ask(pending(dialect, wanted, offers.slice(from, from + OFFERS_AT_ONCE)))));
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
export function offered(offers: readonly Offer[]): Fragment {
  const list = padded(offers).map(offeredBy);
  return {
    sql: `(${list.map(({ sql }) => `(${sql})`).join(' OR ')})`,
    params: list.flatMap(({ params }) => params),
  };
}

function offeredBy({ agent, version, hash }: Offer): Fragment {
  const sql = `r.agent = ? AND r.version = ?${hash === null ? '' : ' AND r.definition_hash = ?'}`;
  return { sql, params: hash === null ? [agent, version] : [agent, version, hash] };
}

function* ask(branches: readonly Fragment[]): Program<readonly Row[]> {
  return yield* query(
    branches.map(({ sql }) => sql).join(' UNION ALL '),
    branches.flatMap(({ params }) => params),
  );
}

/** Each once: a run that is found by two of them would take two places. */
function distinct(offers: readonly Offer[]): Offer[] {
  return [...new Map(offers.map((offer) => [offerText(offer), offer])).values()];
}

function clock(dialect: Dialect): Fragment {
  return {
    sql: `SELECT 'clock' AS what, '' AS id, '' AS status, ${dialect.now} AS number_1, 0 AS number_2, 0 AS number_3`,
    params: [],
  };
}

/** One branch per way of being claimable, each walking an index of its own and bounded, so that a long queue costs no more than a short one. */
function claimable(dialect: Dialect, wanted: DueQuery, offers: readonly Offer[]): Fragment[] {
  const can = offered(offers);
  // By due time, which the index has: a storm of backoffs that are not due yet is never read.
  const backingOff = { can, order: 'r.next_attempt_at', index: 'agent_runs_due' };
  // In a statement of its own, Postgres reads its clock once and looks for it in an index; else it reads the clock for each row, and all rows.
  const isDue = `r.next_attempt_at <= (SELECT ${dialect.now})`;
  const branches = [
    ...pending(dialect, wanted, offers.slice(0, OFFERS_AT_ONCE)),
    candidates(dialect, wanted, { ...backingOff, where: `r.status = 'retry_wait' AND ${isDue}` }),
    candidates(dialect, wanted, { ...backingOff, where: `r.status = 'retry_wait' AND r.next_attempt_at IS NULL` }),
  ];
  const lost = { where: expired(dialect), join: leaseJoin(dialect), can, order: 'r.created_at, r.id' };
  return wanted.takeovers ? [...branches, candidates(dialect, wanted, lost)] : branches;
}

/** One branch per offer: what only others can execute is never read, however much of it there is. */
function pending(dialect: Dialect, wanted: DueQuery, offers: readonly Offer[]): Fragment[] {
  const search = { where: `r.status = 'pending'`, order: 'r.created_at, r.id' };
  return offers.map((offer) =>
    candidates(dialect, wanted, {
      ...search,
      can: offeredBy(offer),
      // Over all hashes the index has another order.
      ...(offer.hash !== null && { index: 'agent_runs_queue' }),
    }),
  );
}

interface Search {
  where: string;
  can: Fragment;
  order: string;
  index?: string;
  join?: string;
}

function candidates(
  dialect: Dialect,
  { contractVersion, limit }: DueQuery,
  { where, can, order, index, join = '' }: Search,
): Fragment {
  const from = `${dialect.tables.runs} r${index === undefined ? '' : dialect.indexHint(index)}${join}`;
  return {
    sql:
      `SELECT * FROM (SELECT 'claimable' AS what, r.id AS id, r.status AS status, r.created_at AS number_1, 0 AS number_2, 0 AS number_3 FROM ${from} ` +
      `WHERE ${where} AND ${can.sql} AND r.contract_version <= ? ORDER BY ${order} LIMIT ?) candidates`,
    params: [...can.params, contractVersion, limit],
  };
}

export function leaseJoin(dialect: Dialect): string {
  return ` LEFT JOIN ${dialect.tables.workers} w ON w.id = r.owner`;
}

/** Running, but the owner's lease is over or its row gone; needs {@link leaseJoin}. */
export function expired(dialect: Dialect): string {
  return `r.status = 'running' AND (w.id IS NULL OR w.lease_expires_at <= ${dialect.now})`;
}

function held(dialect: Dialect, ids: readonly string[]): Fragment {
  const { runs, inbox } = dialect.tables;
  const list = padded(ids);
  return {
    sql:
      `SELECT 'held' AS what, r.id AS id, r.status AS status, r.attempt AS number_1, CASE WHEN r.interrupt_request IS NULL THEN 0 ELSE 1 END AS number_2, ` +
      `(SELECT COUNT(*) FROM ${inbox} m WHERE m.run_id = r.id AND m.status = 'queued') AS number_3 FROM ${runs} r WHERE r.id IN (${placeholders(list.length)})`,
    params: list,
  };
}

function byAge(a: Row, b: Row): number {
  return Number(a['number_1']) - Number(b['number_1']) || ((a['id'] as string) < (b['id'] as string) ? -1 : 1);
}
