// https://www.postgresql.org/docs/current/sql-explain.html, https://www.postgresql.org/docs/current/sql-prepare.html (generic and custom plans)
import type { QueryRunner } from 'typeorm';
import { isRead, type QueryPlan, type TableAccess } from './query-plan.js';
import type { RecordedStatement } from './statement-recorder.js';

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Actual Rows'?: number;
  'Actual Loops'?: number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  Plans?: PlanNode[];
}

/** After so many executions with a plan for their values the server may go over to one for any values. */
const CUSTOM_PLANS = 5;
const NAME = 'plan_under_test';

/** Both as a fresh connection plans it and as one that has executed it often. */
export async function explainOnPostgres(runner: QueryRunner, statement: RecordedStatement): Promise<QueryPlan[]> {
  const { sql, values } = statement;
  const execute = `EXECUTE ${NAME}${values.length === 0 ? '' : `(${values.map(literal).join(', ')})`}`;
  const how = isRead(sql) ? 'EXPLAIN (ANALYZE, FORMAT JSON)' : 'EXPLAIN (FORMAT JSON)';
  await runner.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  try {
    await runner.query(`PREPARE ${NAME} AS ${sql}`);
    const first = await planOf(runner, `${how} ${execute}`);
    for (let done = 1; done < CUSTOM_PLANS; done += 1) await runner.query(`EXPLAIN ${execute}`);
    const later = await planOf(runner, `${how} ${execute}`);
    return [
      { sql, made: 'for these values', accesses: accessesIn(first) },
      { sql, made: 'later', accesses: accessesIn(later) },
    ];
  } finally {
    await runner.query('ROLLBACK');
    await runner.query('DEALLOCATE ALL');
  }
}

async function planOf(runner: QueryRunner, sql: string): Promise<PlanNode> {
  const rows = (await runner.query(sql)) as { 'QUERY PLAN': { Plan: PlanNode }[] }[];
  return rows[0]?.['QUERY PLAN'][0]?.Plan as PlanNode;
}

function accessesIn(node: PlanNode): TableAccess[] {
  const inner = (node.Plans ?? []).flatMap(accessesIn);
  const index = node['Index Name'];
  const table = node['Relation Name'] ?? index;
  // A bitmap heap scan reads what its bitmap index scans have found already.
  if (table === undefined || node['Node Type'] === 'ModifyTable' || node['Node Type'] === 'LockRows') return inner;
  const loops = node['Actual Loops'];
  const each =
    (node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0);
  const isHeap = node['Node Type'] === 'Bitmap Heap Scan';
  return [
    {
      table,
      index: index ?? (isHeap ? 'several' : null),
      isFullScan: node['Node Type'] === 'Seq Scan',
      rows: loops === undefined ? null : isHeap ? 0 : Math.round(each * loops),
    },
    ...inner,
  ];
}

function literal(value: unknown): string {
  if (value === null) return 'NULL';
  if (Array.isArray(value)) return text(`{${value.map((item) => JSON.stringify(String(item))).join(',')}}`);
  return text(String(value));
}

function text(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}
