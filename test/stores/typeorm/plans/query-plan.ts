// How a server answers a statement: which rows of which table it reads, and by which index. Asked of the server itself, with the very text and values that
// the store sent, prepared as the store prepares them. Reads are executed (and rolled back), so that what they read is counted, not estimated.
import type { QueryRunner } from 'typeorm';
import type { ServerType } from '../server-subject.js';
import type { RecordedStatement } from './statement-recorder.js';
import { explainOnMariadb } from './mariadb-plan.js';
import { explainOnPostgres } from './postgres-plan.js';

export interface TableAccess {
  /** The table's name or, where the server tells only that, its alias. */
  table: string;
  /** Null: no index was used. */
  index: string | null;
  /** Every row of the table, whatever is wanted. */
  isFullScan: boolean;
  /** Rows read, those left out afterwards included; null for a statement that writes, which is only planned. */
  rows: number | null;
}

export interface QueryPlan {
  sql: string;
  /** As the plan was made: for the values at hand, or for any (Postgres, after a few executions). */
  made: string;
  accesses: TableAccess[];
}

export function explain(type: ServerType, runner: QueryRunner, statement: RecordedStatement): Promise<QueryPlan[]> {
  return type === 'mariadb' ? explainOnMariadb(runner, statement) : explainOnPostgres(runner, statement);
}

export function isRead(sql: string): boolean {
  return /^\s*SELECT\b/i.test(sql);
}

/** Rows that all plans of a call read, of any table. */
export function rowsRead(plans: readonly QueryPlan[]): number {
  return Math.max(
    0,
    ...[...new Set(plans.map(({ made }) => made))].map((made) =>
      plans
        .filter((plan) => plan.made === made)
        .flatMap(({ accesses }) => accesses)
        .reduce((sum, { rows }) => sum + (rows ?? 0), 0),
    ),
  );
}

/** One line a table, for people. */
export function inWords(plans: readonly QueryPlan[]): string[] {
  return plans.flatMap(({ made, accesses }) =>
    accesses.map(
      ({ table, index, isFullScan, rows }) =>
        `${made}: ${table} by ${index ?? 'no index'}${isFullScan ? ', all of it' : ''}${rows === null ? '' : `, ${rows} rows`}`,
    ),
  );
}
