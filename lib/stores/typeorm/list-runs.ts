/**
 * Group of lists: runs, newest first. A page costs what it shows, however many runs there are: every way to ask walks an index in the order of the list,
 * and the rest of a row is read for those that are shown.
 */
import type { ListQuery, Page } from '../../contracts/ports/run-store.port.js';
import type { RunSummary } from '../../contracts/run.js';
import { RUN_STATUSES, type RunStatus } from '../../contracts/run-status.js';
import type { Dialect } from './dialect.js';
import { Filter } from './filter.js';
import { joinMetadata } from './metadata-filter.js';
import { firstRows, type Fragment } from './ordered-rows.js';
import { pageOf, placeOf } from '../../contracts/page-cursor.js';
import { query, type Program } from './program.js';
import { SUMMARY_COLUMNS, summaryOf } from './run.mapper.js';
import { LAST_ROW, lastRowJoin } from './run-view.js';

const COLUMNS = SUMMARY_COLUMNS.map(({ name }) => `r.${name}`).join(', ');

export function* listRuns(dialect: Dialect, wanted: ListQuery): Program<Page<RunSummary>> {
  if (wanted.statuses?.length === 0) return { items: [] };
  const { sql, params } = placesOfPage(dialect, wanted);
  const rows = yield* query(
    // CROSS, so that SQLite begins with the page, and not with all runs.
    `SELECT ${COLUMNS}, ${LAST_ROW} FROM (${sql}) page CROSS JOIN ${dialect.tables.runs} r ${lastRowJoin(dialect)} ` +
      `WHERE r.id = page.id ORDER BY page.created_at DESC, page.id DESC`,
    params,
  );
  return pageOf('runs', rows.map(summaryOf), wanted.limit, (run) => run);
}

/** Ids of a page and of the run after it. */
function placesOfPage(dialect: Dialect, wanted: ListQuery): Fragment {
  const { metadata, cursor, limit } = wanted;
  const filter = new Filter()
    .key('r.session_id', wanted.sessionId)
    .key('r.agent', wanted.agent)
    .text('r.actor_id', wanted.actorId);
  const joins = joinMetadata(dialect, filter, 'r.id', metadata);
  // Equal to those of the run, and in the index that is walked then.
  const [createdAt, id] = joins === '' ? ['r.created_at', 'r.id'] : ['m0.created_at', 'm0.run_id'];
  filter.created(createdAt, wanted);
  if (cursor !== undefined) {
    const place = placeOf('runs', cursor);
    filter.add(`${createdAt} <= ?`, place.createdAt);
    filter.add(`(${createdAt} < ? OR ${id} < ?)`, place.createdAt, place.id);
  }
  const statuses = joins === '' ? statusesToWalk(wanted) : [wanted.statuses];
  const from = `${dialect.tables.runs} r${joins === '' ? walking(dialect, wanted) : joins}`;
  const selections = statuses.map((some) => {
    const { sql, params } = filter.and().oneOf('r.status', some).where();
    return { sql: `SELECT ${createdAt} AS created_at, ${id} AS id FROM ${from}${sql}`, params };
  });
  const order = { within: `${createdAt} DESC, ${id} DESC`, byName: 'created_at DESC, id DESC' };
  return firstRows(selections, order, limit + 1);
}

/** One selection for each. Apart from the one over all runs, indexes have the order of the list within one status only. */
function statusesToWalk(wanted: ListQuery): (readonly RunStatus[] | undefined)[] {
  const statuses = wanted.statuses ?? (keysOf(wanted).length > 0 ? RUN_STATUSES : undefined);
  return statuses === undefined ? [undefined] : [...new Set(statuses)].map((status) => [status]);
}

/** Of several keys the database knows best which one few runs have. */
function walking(dialect: Dialect, wanted: ListQuery): string {
  const [key, ...others] = keysOf(wanted);
  if (others.length > 0) return '';
  return dialect.walking(key ?? (wanted.statuses ? 'agent_runs_status' : 'agent_runs_list'));
}

/** Indexes over the keys that are asked for. */
function keysOf({ sessionId, actorId, agent }: ListQuery): string[] {
  return [
    ...(sessionId === undefined ? [] : ['agent_runs_session_list']),
    ...(actorId === undefined ? [] : ['agent_runs_actor']),
    ...(agent === undefined ? [] : ['agent_runs_agent']),
  ];
}
