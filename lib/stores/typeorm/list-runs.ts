/** Group of lists: pages in a stable order that begins with creation, filtered by what has an index or a column (STO-8). Values are always bound, never spelled. */
import { askPlace } from '../../contracts/ask-place.js';
import type { Interaction } from '../../contracts/interaction.js';
import type { InteractionQuery, ListQuery, Page } from '../../contracts/ports/run-store.port.js';
import type { RunMetadata, RunSummary } from '../../contracts/run.js';
import { comparable } from './column.mapper.js';
import { marks, padded, type Dialect } from './dialect.js';
import { interactionOf } from './interaction.mapper.js';
import { metadataValue } from './metadata.mapper.js';
import { cursorAfter, placeOf, type ListName, type Places } from './page-cursor.js';
import { query, type Program, type SqlValue } from './program.js';
import { SUMMARY_COLUMNS, summaryOf } from './run.mapper.js';
import { LAST_ROW, lastRowJoin } from './run-view.js';

/** Conditions of a WHERE clause and their values, in step. */
class Filter {
  private readonly conditions: string[] = [];
  readonly params: SqlValue[] = [];

  add(condition: string, ...params: SqlValue[]): this {
    this.conditions.push(condition);
    this.params.push(...params);
    return this;
  }

  equal(column: string, value: string | undefined): this {
    return value === undefined ? this : this.add(`${column} = ?`, value);
  }

  /** An empty list matches nothing. */
  oneOf(column: string, values: readonly string[] | undefined): this {
    if (values === undefined) return this;
    if (values.length === 0) return this.add('1 = 0');
    const list = padded(values);
    return this.add(`${column} IN (${marks(list.length)})`, ...list);
  }

  where(): string {
    return this.conditions.length === 0 ? '' : ` WHERE ${this.conditions.join(' AND ')}`;
  }
}

/** Newest first. */
export function* listRuns(dialect: Dialect, wanted: ListQuery): Program<Page<RunSummary>> {
  const filter = new Filter()
    .equal('r.session_id', wanted.sessionId)
    .equal('r.agent', wanted.agent)
    .oneOf('r.status', wanted.statuses)
    .equal('r.parent_run_id', wanted.parentRunId);
  addMetadata(filter, 'r.id', wanted.metadata, dialect);
  if (wanted.cursor !== undefined) {
    const { createdAt, id } = placeOf('runs', wanted.cursor);
    filter.add('r.created_at <= ? AND (r.created_at < ? OR r.id < ?)', createdAt, createdAt, id);
  }
  const columns = SUMMARY_COLUMNS.map(({ name }) => `r.${name}`).join(', ');
  const rows = yield* query(
    `SELECT ${columns}, ${LAST_ROW} FROM ${dialect.tables.runs} r ${lastRowJoin(dialect)}${filter.where()} ORDER BY r.created_at DESC, r.id DESC LIMIT ?`,
    [...filter.params, wanted.limit + 1],
  );
  return pageOf('runs', rows.map(summaryOf), wanted.limit, (run) => run);
}

/** Oldest first, those of one moment by run and in call order. */
export function* listInteractions(dialect: Dialect, wanted: InteractionQuery): Program<Page<Interaction>> {
  const filter = new Filter()
    .oneOf('i.status', wanted.statuses)
    .equal('i.kind', wanted.kind)
    .equal('i.run_id', wanted.runId)
    .equal('i.session_id', wanted.sessionId)
    .equal('i.agent', wanted.agent)
    .equal('i.approver_role', wanted.approverRole === undefined ? undefined : comparable(wanted.approverRole));
  addMetadata(filter, 'i.run_id', wanted.metadata, dialect);
  if (wanted.cursor !== undefined) {
    const { createdAt, runId, place, id } = placeOf('interactions', wanted.cursor);
    filter.add('i.created_at >= ?', createdAt);
    filter.add('(i.created_at, i.run_id, i.place, i.id) > (?, ?, ?, ?)', createdAt, runId, place, id);
  }
  const rows = yield* query(
    `SELECT i.* FROM ${dialect.tables.interactions} i${filter.where()} ORDER BY i.created_at, i.run_id, i.place, i.id LIMIT ?`,
    [...filter.params, wanted.limit + 1],
  );
  return pageOf('interactions', rows.map(interactionOf), wanted.limit, (one) => ({ ...one, place: askPlace(one) }));
}

/** Every pair selects runs of its own, by the index over names and values. */
function addMetadata(filter: Filter, runId: string, metadata: RunMetadata = {}, dialect: Dialect): void {
  for (const [name, value] of Object.entries(metadata)) {
    const rows = `SELECT m.run_id FROM ${dialect.tables.metadata} m WHERE m.name = ? AND m.value = ?`;
    filter.add(`${runId} IN (${rows})`, comparable(name), metadataValue(value));
  }
}

/** One row more than the page was read: it tells whether there is a next one. */
function pageOf<L extends ListName, Item>(
  list: L,
  found: readonly Item[],
  limit: number,
  placed: (item: Item) => Places[L],
): Page<Item> {
  const items = found.slice(0, limit);
  const last = items.at(-1);
  return last && found.length > items.length ? { items, nextCursor: cursorAfter(list, placed(last)) } : { items };
}
