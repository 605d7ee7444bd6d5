import {
  type Interaction,
  INTERACTION_STATUSES,
  type InteractionKind,
  interactionPlace,
  type InteractionStatus,
} from '../../contracts/interaction.js';
import { pageOf, placeOf } from '../../contracts/page-cursor.js';
import type { InteractionQuery, ListQuery, Page } from '../../contracts/ports/run-store.port.js';
import { RUN_STATUSES, type RunStatus } from '../../contracts/run-status.js';
import type { RunMetadata, RunSummary } from '../../contracts/run.js';
import type { Dialect } from './dialect.js';
import { Filter, firstRows, type Fragment } from './filter.js';
import { INTERACTION_COLUMNS, interactionOf } from './interactions.js';
import { type Program, query } from './program.js';
import { metadataValue } from './rows.js';
import { LAST_ROW, lastRowJoin, SUMMARY_COLUMNS, summaryOf } from './runs.js';

const RUN_LIST = SUMMARY_COLUMNS.map(({ name }) => `r.${name}`).join(', ');

/**
 * Newest first. A page costs what it shows, however many runs there are: every query walks an index in the order of the
 * list, and the rest of a row is read for those that are shown.
 */
export function* listRuns(dialect: Dialect, wanted: ListQuery): Program<Page<RunSummary>> {
  if (wanted.statuses?.length === 0) return { items: [] };
  const { sql, params } = placesOfPage(dialect, wanted);
  const rows = yield* query(
    // CROSS, so that SQLite begins with the page, and not with all runs.
    `SELECT ${RUN_LIST}, ${LAST_ROW} FROM (${sql}) page CROSS JOIN ${dialect.tables.runs} r ${lastRowJoin(dialect)} ` +
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
  const from = `${dialect.tables.runs} r${joins === '' ? runHint(dialect, wanted) : joins}`;
  const selections = statuses.map((some) => {
    const { sql, params } = filter.and().oneOf('r.status', some).where();
    return { sql: `SELECT ${createdAt} AS created_at, ${id} AS id FROM ${from}${sql}`, params };
  });
  const order = { within: `${createdAt} DESC, ${id} DESC`, byName: 'created_at DESC, id DESC' };
  return firstRows(selections, order, limit + 1);
}

/** One selection for each. Apart from the one over all runs, indexes have the order of the list within one status only. */
function statusesToWalk(wanted: ListQuery): (readonly RunStatus[] | undefined)[] {
  const statuses = wanted.statuses ?? (runKeysOf(wanted).length > 0 ? RUN_STATUSES : undefined);
  return statuses === undefined ? [undefined] : [...new Set(statuses)].map((status) => [status]);
}

/** Of several keys the database knows best which one few runs have. */
function runHint(dialect: Dialect, wanted: ListQuery): string {
  const [key, ...others] = runKeysOf(wanted);
  if (others.length > 0) return '';
  return dialect.indexHint(key ?? (wanted.statuses ? 'agent_runs_status' : 'agent_runs_list'));
}

/** Indexes over the keys that are asked for. */
function runKeysOf({ sessionId, actorId, agent }: ListQuery): string[] {
  return [
    ...(sessionId === undefined ? [] : ['agent_runs_session_list']),
    ...(actorId === undefined ? [] : ['agent_runs_actor']),
    ...(agent === undefined ? [] : ['agent_runs_agent']),
  ];
}

const INTERACTION_LIST = INTERACTION_COLUMNS.map((name) => `i.${name} AS ${name}`).join(', ');
const KINDS = ['approval', 'question'] as const;

/** Oldest first, those of one moment by run and in call order. Walks indexes as {@link listRuns} does. */
export function* listInteractions(dialect: Dialect, wanted: InteractionQuery): Program<Page<Interaction>> {
  if (wanted.statuses?.length === 0) return { items: [] };
  const filter = new Filter()
    .key('i.run_id', wanted.runId)
    .key('i.session_id', wanted.sessionId)
    .key('i.agent', wanted.agent)
    .text('i.approver_role', wanted.approverRole)
    .text('r.actor_id', wanted.actorId)
    .created('i.created_at', wanted);
  const joins =
    (wanted.actorId === undefined ? '' : ` JOIN ${dialect.tables.runs} r ON r.id = i.run_id`) +
    joinMetadata(dialect, filter, 'i.run_id', wanted.metadata);
  if (wanted.cursor !== undefined) {
    const { createdAt, runId, place, id } = placeOf('interactions', wanted.cursor);
    filter.add('i.created_at >= ?', createdAt);
    filter.add('(i.created_at, i.run_id, i.place, i.id) > (?, ?, ?, ?)', createdAt, runId, place, id);
  }
  const from = `${dialect.tables.interactions} i${joins === '' ? interactionHint(dialect, wanted) : joins}`;
  const selections = wordsToWalk(wanted).map(({ statuses, kinds }) => {
    const { sql, params } = filter.and().oneOf('i.status', statuses).oneOf('i.kind', kinds).where();
    return { sql: `SELECT ${INTERACTION_LIST} FROM ${from}${sql}`, params };
  });
  const { sql, params } = firstRows(
    selections,
    { within: 'i.created_at, i.run_id, i.place, i.id', byName: 'created_at, run_id, place, id' },
    wanted.limit + 1,
  );
  const rows = yield* query(sql, params);
  return pageOf('interactions', rows.map(interactionOf), wanted.limit, (one) => ({
    ...one,
    place: interactionPlace(one),
  }));
}

interface Words {
  statuses: readonly InteractionStatus[] | undefined;
  kinds: readonly InteractionKind[] | undefined;
}

/** One selection for each. Indexes have the order of the list within one status only, and where nothing else is asked for, within one kind of it. */
function wordsToWalk(wanted: InteractionQuery): Words[] {
  const { statuses, kind, runId } = wanted;
  const kinds = kind === undefined ? undefined : [kind];
  if (runId !== undefined) return [{ statuses, kinds }];
  return [...new Set(statuses ?? INTERACTION_STATUSES)].flatMap((status) =>
    kinds === undefined && interactionKeysOf(wanted).length === 0
      ? KINDS.map((one) => ({ statuses: [status], kinds: [one] }))
      : [{ statuses: [status], kinds }],
  );
}

/** Of several keys the database knows best which one few asks have. */
function interactionHint(dialect: Dialect, wanted: InteractionQuery): string {
  const [key, ...others] = interactionKeysOf(wanted);
  return others.length > 0 ? '' : dialect.indexHint(key ?? 'agent_run_interactions_kind');
}

/** Indexes over the keys that are asked for. */
function interactionKeysOf({ runId, sessionId, agent, approverRole }: InteractionQuery): string[] {
  if (runId !== undefined) return ['agent_run_interactions_run'];
  return [
    ...(sessionId === undefined ? [] : ['agent_run_interactions_session']),
    ...(agent === undefined ? [] : ['agent_run_interactions_agent']),
    ...(approverRole === undefined ? [] : ['agent_run_interactions_role']),
  ];
}

/**
 * Selects by metadata of runs: all pairs, each by the index over names and values, or by its run, whichever the
 * database finds better.
 * @returns joins of the rows of metadata as `m0`, `m1` …; their conditions are in the filter then
 */
function joinMetadata(dialect: Dialect, filter: Filter, runId: string, metadata: RunMetadata = {}): string {
  const pairs = Object.entries(metadata);
  for (const [n, [name, value]] of pairs.entries()) {
    filter.key(`m${n}.name`, name).add(`m${n}.value = ?`, metadataValue(value));
  }
  return pairs.map((_, n) => ` JOIN ${dialect.tables.metadata} m${n} ON m${n}.run_id = ${runId}`).join('');
}
