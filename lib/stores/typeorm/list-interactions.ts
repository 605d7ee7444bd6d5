/** Group of lists: approvals and questions, oldest first, those of one moment by run and in call order. Walks indexes as `list-runs.ts` does. */
import { interactionPlace } from '../../contracts/interaction.js';
import {
  INTERACTION_STATUSES,
  type Interaction,
  type InteractionKind,
  type InteractionStatus,
} from '../../contracts/interaction.js';
import type { InteractionQuery, Page } from '../../contracts/ports/run-store.port.js';
import type { Dialect } from './dialect.js';
import { Filter } from './filter.js';
import { INTERACTION_COLUMNS, interactionOf } from './interaction.mapper.js';
import { joinMetadata } from './metadata-filter.js';
import { firstRows } from './ordered-rows.js';
import { pageOf, placeOf } from '../../contracts/page-cursor.js';
import { query, type Program } from './program.js';

const COLUMNS = INTERACTION_COLUMNS.map((name) => `i.${name} AS ${name}`).join(', ');
const KINDS = ['approval', 'question'] as const;

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
  const from = `${dialect.tables.interactions} i${joins === '' ? walking(dialect, wanted) : joins}`;
  const selections = wordsToWalk(wanted).map(({ statuses, kinds }) => {
    const { sql, params } = filter.and().oneOf('i.status', statuses).oneOf('i.kind', kinds).where();
    return { sql: `SELECT ${COLUMNS} FROM ${from}${sql}`, params };
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
    kinds === undefined && keysOf(wanted).length === 0
      ? KINDS.map((one) => ({ statuses: [status], kinds: [one] }))
      : [{ statuses: [status], kinds }],
  );
}

/** Of several keys the database knows best which one few asks have. */
function walking(dialect: Dialect, wanted: InteractionQuery): string {
  const [key, ...others] = keysOf(wanted);
  return others.length > 0 ? '' : dialect.walking(key ?? 'agent_run_interactions_kind');
}

/** Indexes over the keys that are asked for. */
function keysOf({ runId, sessionId, agent, approverRole }: InteractionQuery): string[] {
  if (runId !== undefined) return ['agent_run_interactions_run'];
  return [
    ...(sessionId === undefined ? [] : ['agent_run_interactions_session']),
    ...(agent === undefined ? [] : ['agent_run_interactions_agent']),
    ...(approverRole === undefined ? [] : ['agent_run_interactions_role']),
  ];
}
