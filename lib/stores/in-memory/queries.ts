import { type Interaction, interactionPlace } from '../../contracts/interaction.js';
import type { JournalEntry, SequencedEntry } from '../../contracts/journal-entry.js';
import { pageOf, placeOf, type Places } from '../../contracts/page-cursor.js';
import type {
  InteractionQuery,
  JournalNews,
  JournalPosition,
  LeaseView,
  ListQuery,
  Page,
  RunAtOneMoment,
  StoreMetrics,
} from '../../contracts/ports/run-store.port.js';
import { RUN_STATUSES, type RunStatus } from '../../contracts/run-status.js';
import { RUN_SUMMARY_PROPERTIES, type RunRecord, type RunSummary } from '../../contracts/run.js';
import { decodePayload, detached } from '../codec/payload-codec.js';
import { answeredRuns, byAge, byText, claimableSince, isExpired, leaseOf } from './sweeps.js';
import type { InMemoryTables, JournalRow } from './tables.js';

/** What a store is asked by people and programs: journals, lists, interactions, metrics. Answers are detached; summaries carry no content. */
export function load(tables: InMemoryTables, runId: string): { run: RunRecord; lease: LeaseView | null } | null {
  const run = tables.runs.get(runId);
  return run ? { run: detached(run), lease: leaseOf(tables, run) } : null;
}

export function snapshot(tables: InMemoryTables, runId: string): RunAtOneMoment | null {
  const loaded = load(tables, runId);
  const open = tables.interactionsOf(runId).filter(({ status }) => status === 'pending');
  return loaded && { ...loaded, interactions: detached(open.sort(byAsk)) };
}

export function readJournal(
  tables: InMemoryTables,
  runId: string,
  after: number,
  limit: number,
): { run: RunRecord; entries: SequencedEntry[] } | null {
  const run = tables.runs.get(runId);
  if (!run) return null;
  const entries: SequencedEntry[] = [];
  const rows = tables.journals.get(runId) ?? [];
  for (let at = firstRowAfter(rows, after); at < rows.length && entries.length < limit; at += 1) {
    for (const entry of entriesOf(runId, rows[at] as JournalRow))
      if (entry.sequence > after && entries.length < limit) entries.push(entry);
  }
  return { run: detached(run), entries };
}

export function follow(tables: InMemoryTables, positions: readonly JournalPosition[], limit: number): JournalNews[] {
  let left = limit;
  return positions.flatMap(({ runId, after }) => {
    const run = tables.runs.get(runId);
    const rows = tables.journals.get(runId) ?? [];
    const from = firstRowAfter(rows, after);
    const read = rows.slice(from, from + left);
    left -= read.length;
    if (!run || read.length === 0) return [];
    const entries = read.flatMap((row) => entriesOf(runId, row));
    return [{ runId, status: run.status, entries, isComplete: from + read.length === rows.length }];
  });
}

function entriesOf(runId: string, { first, entries }: JournalRow): SequencedEntry[] {
  const decoded = decodePayload(runId, 'entries', entries) as JournalEntry[];
  return decoded.map((entry, index) => ({ ...entry, sequence: first + index }));
}

/** Index of the first row that holds an entry after the sequence, by bisection: a late page of a long journal costs no more than an early one. */
function firstRowAfter(rows: readonly { first: number; count: number }[], after: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const row = rows[middle] as { first: number; count: number };
    if (row.first + row.count - 1 > after) high = middle;
    else low = middle + 1;
  }
  return low;
}

export function list(tables: InMemoryTables, query: ListQuery): Page<RunSummary> {
  const place = query.cursor === undefined ? undefined : placeOf('runs', query.cursor);
  const fits = runFits(query);
  const found = [...tables.runs.values()].filter(
    (run) =>
      (query.sessionId === undefined || run.sessionId === query.sessionId) &&
      (query.agent === undefined || run.agent === query.agent) &&
      (query.statuses === undefined || query.statuses.includes(run.status)) &&
      isCreatedWithin(run, query) &&
      fits(run) &&
      (place === undefined || byAge(run, place) < 0),
  );
  const page = pageOf(
    'runs',
    found.sort((a, b) => byAge(b, a)),
    query.limit,
    (run) => run,
  );
  return { ...page, items: page.items.map((run) => detached(summaryOf(run))) };
}

export function interactions(tables: InMemoryTables, query: InteractionQuery): Page<Interaction> {
  const place = query.cursor === undefined ? undefined : placeOf('interactions', query.cursor);
  const fits = runFits(query);
  const source = query.runId === undefined ? [...tables.interactions.values()] : tables.interactionsOf(query.runId);
  const found = source.filter(
    (one) =>
      (query.statuses === undefined || query.statuses.includes(one.status)) &&
      (query.kind === undefined || one.kind === query.kind) &&
      (query.sessionId === undefined || one.sessionId === query.sessionId) &&
      (query.agent === undefined || one.agent === query.agent) &&
      (query.approverRole === undefined || one.approverRole === query.approverRole) &&
      isCreatedWithin(one, query) &&
      fits(tables.runs.get(one.runId)) &&
      (place === undefined || byAsk(one, place) > 0),
  );
  const page = pageOf('interactions', found.sort(byAsk), query.limit, (one) => ({
    ...one,
    place: interactionPlace(one),
  }));
  return { ...page, items: page.items.map((one) => detached(one)) };
}

/** Whether a run was started by this actor and has all of these pairs, compared as text. */
function runFits({ actorId, metadata = {} }: Pick<ListQuery, 'actorId' | 'metadata'>) {
  const wanted = Object.entries(metadata).map(([key, value]) => [key, String(value)] as const);
  if (actorId === undefined && wanted.length === 0) return () => true;
  return (run: RunRecord | undefined): boolean =>
    run !== undefined &&
    (actorId === undefined || run.actor?.id === actorId) &&
    wanted.every(([key, value]) => Object.hasOwn(run.metadata, key) && String(run.metadata[key]) === value);
}

function isCreatedWithin(
  { createdAt }: { createdAt: number },
  {
    createdSince = Number.NEGATIVE_INFINITY,
    createdBefore = Number.POSITIVE_INFINITY,
  }: Pick<ListQuery, 'createdSince' | 'createdBefore'>,
): boolean {
  return createdAt >= createdSince && createdAt < createdBefore;
}

export function countPending(tables: InMemoryTables, upTo: number): number {
  return Math.min(upTo, tables.countWithStatus('pending') + tables.countWithStatus('queued'));
}

export function metrics(tables: InMemoryTables, now: number): StoreMetrics {
  const running = tables.withStatus('running');
  const since = [...tables.withStatus('pending'), ...tables.withStatus('retry_wait'), ...running]
    .map((run) => claimableSince(tables, run, now))
    .filter((at) => at !== null);
  let operations = 0;
  for (const run of tables.runs.values()) operations += run.totals.results;
  return {
    runsByStatus: Object.fromEntries(RUN_STATUSES.map((status) => [status, tables.countWithStatus(status)])) as Record<
      RunStatus,
      number
    >,
    oldestClaimableMs: since.length === 0 ? null : Math.max(0, now - since.reduce((a, b) => Math.min(a, b))),
    openInteractions: tables.countPendingInteractions(),
    operations,
    journalRows: tables.journalRows,
    journalBytes: tables.journalBytes,
    offenders: running.filter((run) => isExpired(tables, run, now)).length + answeredRuns(tables).length,
  };
}

function summaryOf(run: RunRecord): RunSummary {
  return Object.fromEntries(
    RUN_SUMMARY_PROPERTIES.map((property) => [property, run[property]]),
  ) as unknown as RunSummary;
}

type AskPlace = Pick<Interaction, 'createdAt' | 'runId' | 'operationKey' | 'ordinal' | 'id'> | Places['interactions'];

/** Older before newer, those of one moment by run, within a run in call order. */
export function byAsk(a: AskPlace, b: AskPlace): number {
  return a.createdAt - b.createdAt || byText(a.runId, b.runId) || byText(placeIn(a), placeIn(b)) || byText(a.id, b.id);
}

function placeIn(ask: AskPlace): string {
  return 'place' in ask ? ask.place : interactionPlace(ask);
}
