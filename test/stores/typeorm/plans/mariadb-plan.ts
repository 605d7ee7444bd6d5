// https://mariadb.com/kb/en/analyze-format-json/
import type { QueryRunner } from 'typeorm';
import { isRead, type QueryPlan, type TableAccess } from './query-plan.js';
import type { RecordedStatement } from './statement-recorder.js';

interface RawConnection {
  execute(sql: string, values: unknown[], callback: (error: Error | null, rows: unknown) => void): void;
}

interface TableNode {
  table_name: string;
  access_type: string;
  key?: string;
  index_merge?: unknown;
  r_rows?: number;
  r_loops?: number;
}

/** How long to wait for locks says nothing about the plan. */
const SETTING = /^SET STATEMENT .*? FOR /;

export async function explainOnMariadb(runner: QueryRunner, statement: RecordedStatement): Promise<QueryPlan[]> {
  const { values } = statement;
  const sql = statement.sql.replace(SETTING, '');
  const raw = (await runner.connect()) as RawConnection;
  const send = (text: string, given: unknown[] = []) =>
    new Promise<unknown>((resolve, reject) =>
      raw.execute(text, given, (error, rows) => (error ? reject(error) : resolve(rows))),
    );
  const how = isRead(sql) ? 'ANALYZE' : 'EXPLAIN';
  await send('SET TRANSACTION ISOLATION LEVEL READ COMMITTED');
  await send('START TRANSACTION');
  try {
    const rows = (await send(`${how} FORMAT=JSON ${sql}`, values)) as Record<string, string>[];
    const plan: unknown = JSON.parse(Object.values(rows[0] ?? {})[0] ?? '{}');
    return [{ sql, made: 'for these values', accesses: accessesIn(plan) }];
  } finally {
    await send('ROLLBACK');
  }
}

/** Every `table` of the plan, however deep. */
function accessesIn(node: unknown): TableAccess[] {
  if (typeof node !== 'object' || node === null) return [];
  if (Array.isArray(node)) return node.flatMap(accessesIn);
  return Object.entries(node).flatMap(([name, inner]) =>
    name === 'table' && isTable(inner) ? [accessOf(inner), ...accessesIn(inner)] : accessesIn(inner),
  );
}

function isTable(node: unknown): node is TableNode {
  return typeof node === 'object' && node !== null && 'table_name' in node && 'access_type' in node;
}

function accessOf(table: TableNode): TableAccess {
  const { table_name: name, access_type: type, key, r_rows: rows, r_loops: loops } = table;
  const isDerived = name.startsWith('<');
  return {
    table: name,
    index: key ?? (type === 'index_merge' ? 'several' : null),
    isFullScan: type === 'ALL' && !isDerived,
    rows:
      rows === undefined
        ? type === 'const' || type === 'system'
          ? 1
          : null
        : isDerived
          ? 0
          : Math.round(rows * (loops ?? 1)),
  };
}
