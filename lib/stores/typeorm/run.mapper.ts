/**
 * A run between our record and its rows: the header in `agent_runs`, the sequence and the totals on the last row of its journal. The list of
 * columns here is the only one; statements are built from it.
 */
import type { LeaseView } from '../../contracts/ports/run-store.port.js';
import type { RunChange, RunRecord, RunSummary, RunTotals, SessionRecord } from '../../contracts/run.js';
import { NO_USAGE } from '../../contracts/operation.js';
import { fromColumn, readable, toColumn, type ColumnKind } from './column.mapper.js';
import type { Row, SqlValue } from './program.js';
import type { Holds } from './sharing.js';

type HeaderProperty = Exclude<keyof RunRecord, 'sequence' | 'totals'>;

interface RunColumn {
  readonly name: string;
  readonly property: HeaderProperty;
  readonly kind: ColumnKind;
}

const column = (property: HeaderProperty, kind: ColumnKind = 'text'): RunColumn => ({
  name: property.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
  property,
  kind,
});

export const RUN_COLUMNS: readonly RunColumn[] = [
  column('id'),
  column('kind'),
  column('agent'),
  column('version'),
  column('definitionHash'),
  column('contractVersion', 'number'),
  column('sessionId'),
  column('sessionMode'),
  column('sessionOrder', 'number'),
  column('historyRunId'),
  column('historyCaptured', 'flag'),
  column('precedingRunId'),
  column('requestScope'),
  column('requestId'),
  column('requestDigest'),
  column('status'),
  column('revision', 'number'),
  column('waitingFor', 'json'),
  column('attention', 'json'),
  column('attempt', 'number'),
  column('owner'),
  column('wake', 'json'),
  column('nextAttemptAt', 'number'),
  column('deadlineAt', 'number'),
  column('interruptRequest', 'json'),
  column('recoveries', 'number'),
  column('resultsAtClaim', 'number'),
  column('restarts', 'number'),
  column('budgetMaxTotalTokens', 'number'),
  column('actor', 'json'),
  column('frozen', 'json'),
  column('output', 'json'),
  column('error', 'json'),
  column('metadata', 'json'),
  column('activeMs', 'number'),
  column('claimedAt', 'number'),
  column('createdAt', 'number'),
  column('updatedAt', 'number'),
  column('startedAt', 'number'),
  column('finishedAt', 'number'),
];

const SUMMARY_PROPERTIES = [
  'id',
  'agent',
  'version',
  'status',
  'waitingFor',
  'attention',
  'sessionId',
  'actor',
  'attempt',
  'metadata',
  'nextAttemptAt',
  'createdAt',
  'updatedAt',
  'startedAt',
  'finishedAt',
] as const;

export const SUMMARY_COLUMNS: readonly RunColumn[] = RUN_COLUMNS.filter(({ property }) =>
  (SUMMARY_PROPERTIES as readonly string[]).includes(property),
);

/** What a column holds as a parameter. */
export function heldBy({ kind }: Pick<RunColumn, 'kind'>): Holds {
  return kind === 'number' || kind === 'flag' ? 'number' : 'text';
}

/** A header ready to be written. Its text is made before the transaction begins where the caller can. */
export function headerOf(run: RunRecord): SqlValue[] {
  return RUN_COLUMNS.map(({ property, kind }) => toColumn(kind, run[property]));
}

/** The set columns of a change, in one fixed order so that few shapes of statement exist. A field that is undefined is not set. */
export function changedColumns(change: RunChange): { name: string; value: SqlValue; holds: Holds }[] {
  return RUN_COLUMNS.filter(({ property }) => change[property as keyof RunChange] !== undefined).map(
    ({ name, property, kind }) => ({
      name,
      value: toColumn(kind, change[property as keyof RunChange]),
      holds: heldBy({ kind }),
    }),
  );
}

/** @throws JournalCorruptError */
export function runOf(row: Row): RunRecord {
  return readable(row['id'], 'The header', () => ({
    ...headerFrom(RUN_COLUMNS, row),
    sequence: sequenceOf(row),
    totals: strictTotalsOf(row),
  })) as RunRecord;
}

/** As {@link runOf}, but unreadable totals count as none: a run with a broken journal can still be locked, and told to need attention. */
export function lockedRunOf(row: Row): RunRecord {
  return readable(row['id'], 'The header', () => ({ ...headerFrom(RUN_COLUMNS, row), ...placeOf(row) })) as RunRecord;
}

/** One unreadable run never makes a list unreadable. */
export function summaryOf(row: Row): RunSummary {
  return readable(row['id'], 'The header', () => ({
    ...headerFrom(SUMMARY_COLUMNS, row),
    ...placeOf(row),
  })) as RunSummary;
}

/** In the order in which they are stored: only ever longer. */
const USAGE_NAMES = Object.keys(NO_USAGE) as (keyof typeof NO_USAGE)[];

export function totalsText(totals: RunTotals): string {
  const { turn, results, usage } = totals;
  // By position: the names would be a tenth of the journal.
  return JSON.stringify([turn, results, ...USAGE_NAMES.map((name) => usage[name])]);
}

/** Null unless the run is running and has an owner. `heartbeat_at` and `lease_expires_at` come from the owner's worker row, if there is one. */
export function leaseOf(run: Pick<RunRecord, 'status' | 'owner'>, row: Row): LeaseView | null {
  if (run.status !== 'running' || run.owner === null) return null;
  return {
    owner: run.owner,
    heartbeatAt: fromColumn('number', row['lease_heartbeat_at']) as number | null,
    expiresAt: fromColumn('number', row['lease_expires_at']) as number | null,
  };
}

export const SESSION_COLUMNS = [
  'id',
  'mode',
  'owner',
  'head_run_id',
  'latest_completed_run_id',
  'last_order',
  'started_order',
] as const;

export function sessionOf(row: Row): SessionRecord {
  return {
    id: row['id'] as string,
    mode: row['mode'] as SessionRecord['mode'],
    owner: fromColumn('json', row['owner']) as string | null,
    headRunId: row['head_run_id'] as string | null,
    latestCompletedRunId: row['latest_completed_run_id'] as string | null,
    lastOrder: Number(row['last_order']),
    startedOrder: Number(row['started_order']),
  };
}

function headerFrom(columns: readonly RunColumn[], row: Row): Record<string, unknown> {
  const header: Record<string, unknown> = {};
  for (const { name, property, kind } of columns) header[property] = fromColumn(kind, row[name]);
  return header;
}

/** Sequence of the last entry; 0 before the first. */
function sequenceOf(row: Row): number {
  return row['last_first'] === null ? 0 : Number(row['last_first']) + Number(row['last_count']) - 1;
}

/** @throws SyntaxError where they cannot be read */
function strictTotalsOf(row: Row): RunTotals {
  const [turn = 0, results = 0, ...usage] = (fromColumn('json', row['last_totals']) as number[] | null) ?? [];
  return {
    turn,
    results,
    usage: Object.fromEntries(
      USAGE_NAMES.map((name, index) => [name, usage[index] ?? 0]),
    ) as unknown as RunTotals['usage'],
  };
}

/** None where there are none, or none that can be read. */
export function totalsOf(row: Row): RunTotals {
  try {
    return strictTotalsOf(row);
  } catch {
    return { turn: 0, results: 0, usage: { ...NO_USAGE } };
  }
}

function placeOf(row: Row): Pick<RunRecord, 'sequence' | 'totals'> {
  return { sequence: sequenceOf(row), totals: totalsOf(row) };
}
