/** docs/guide/databases.md: its tables and indexes are those of a migrated database of each kind, and what it shows for deleting old runs deletes those and no others. */
import { pathToFileURL } from 'node:url';
import type { DataSource } from 'typeorm';
import type { RunStore } from '../../lib/contracts/ports/run-store.port.js';
import { TypeOrmRunStore } from '../../lib/stores/typeorm/typeorm-run.store.js';
import {
  anInteraction,
  appendNotes,
  ask,
  change,
  claim,
  running,
  submit,
} from '../../packages/contract/lib/scenario.js';
import { isServerThere, ServerSubject, SERVER_TYPES } from '../stores/typeorm/server-subject.js';
import { SqliteSubject } from '../stores/typeorm/sqlite-subject.js';
import { describeIf } from '../support/describe-if.js';
import { readPage, tableUnder } from './doc-page.js';
import { SnippetFiles } from './snippet-files.js';

const PAGE = 'docs/guide/databases.md';
const page = readPage(PAGE);
const files = new SnippetFiles();
afterAll(() => files.remove());
afterAll(() => ServerSubject.dropDatabases(), 60_000);

const namesOf = (cell = ''): string[] => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] as string);

interface Shape {
  keys: Record<string, string[]>;
  indexes: Record<string, { table: string; columns: string[]; isUnique: boolean; isPartial: boolean }>;
}

function documented(): Shape {
  const shape: Shape = { keys: {}, indexes: {} };
  for (const [table, key] of tableUnder(page, 'Tables')) shape.keys[namesOf(table)[0] ?? ''] = namesOf(key);
  let table = '';
  for (const [its = '', index = '', columns = '', , where = ''] of tableUnder(page, 'Indexes')) {
    table = namesOf(its)[0] ?? table;
    shape.indexes[namesOf(index)[0] ?? ''] = {
      table,
      columns: namesOf(columns),
      isUnique: index.includes('(unique)'),
      isPartial: where !== '',
    };
  }
  return shape;
}

async function stored(dataSource: DataSource): Promise<Shape> {
  const shape: Shape = { keys: {}, indexes: {} };
  const runner = dataSource.createQueryRunner();
  for (const table of await runner.getTables(Object.keys(documented().keys))) {
    const name = table.name.split('.').at(-1) as string;
    shape.keys[name] = table.primaryColumns.map((column) => column.name);
    for (const index of table.indices) {
      shape.indexes[index.name as string] = {
        table: name,
        columns: index.columnNames,
        isUnique: index.isUnique,
        isPartial: (index.where ?? '') !== '',
      };
    }
  }
  await runner.release();
  if (dataSource.options.type === 'postgres') await putInOrder(dataSource, shape);
  return shape;
}

/** TypeORM tells columns of an index in the order of the table there. */
async function putInOrder(dataSource: DataSource, { indexes }: Shape): Promise<void> {
  const rows = await dataSource.query<{ name: string; columns: string[] }[]>(
    `SELECT c.relname AS name, array_agg(a.attname::text ORDER BY k.place) AS columns FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid
     CROSS JOIN LATERAL unnest(x.indkey) WITH ORDINALITY k (attnum, place)
     JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.attnum GROUP BY c.relname`,
  );
  for (const { name, columns } of rows) if (indexes[name]) indexes[name].columns = columns;
}

/** On databases without partial indexes; and SQLite has one of them whole, as the page says. */
function on(type: string, shape: Shape): Shape {
  const isWhole = (name: string): boolean =>
    type === 'mariadb' || (type === 'better-sqlite3' && name === 'agent_runs_queue');
  const indexes = Object.entries(shape.indexes).map(([name, index]) => [
    name,
    { ...index, isPartial: index.isPartial && !isWhole(name) },
  ]);
  return { keys: shape.keys, indexes: Object.fromEntries(indexes) as Shape['indexes'] };
}

type Remove = (dataSource: DataSource, before: number, limit?: number) => Promise<number>;

async function removal(): Promise<Remove> {
  const block = page.blocks.find(({ code }) => code.includes('export async function deleteSettledRuns'));
  if (!block) throw new Error(`${PAGE} shows no deleteSettledRuns.`);
  const { file } = files.write(block);
  return ((await import(pathToFileURL(file).href)) as { deleteSettledRuns: Remove }).deleteSettledRuns;
}

const settle = (store: RunStore, id: string): Promise<unknown> => change(store, id, { status: 'completed' });

function suite(
  type: string,
  open: () => Promise<{ dataSource: DataSource; store: TypeOrmRunStore; dispose: () => Promise<void> }>,
) {
  it('has the tables, keys and indexes that the page lists, and no others', async () => {
    const { dataSource, dispose } = await open();
    const found = await stored(dataSource);
    expect(found.keys).toEqual(documented().keys);
    expect(found.indexes).toEqual(on(type, documented()).indexes);
    await dispose();
  });

  it('loses old settled runs without a session to what the page shows, with all their rows, and nothing else', async () => {
    const { dataSource, store, dispose } = await open();
    const remove = await removal();
    const count = async (table: string): Promise<number> =>
      Number((await dataSource.query<{ found: unknown }[]>(`SELECT COUNT(*) AS found FROM ${table}`))[0]?.found);
    for (const id of ['run-1', 'run-2', 'run-3']) {
      await running(store, { id, metadata: { tenant: 'a' } });
      await appendNotes(store, id, 1, ['x']);
    }
    await ask(store, [anInteraction({ runId: 'run-2' })], 'run-2');
    await running(store, { id: 'talk-1', sessionId: 'talk' });
    await settle(store, 'run-1');
    await settle(store, 'run-2');
    await settle(store, 'talk-1');
    expect(await remove(dataSource, 0)).toBe(0);
    expect([await remove(dataSource, Date.now() + 60_000, 1), await remove(dataSource, Date.now() + 60_000)]).toEqual([
      1, 1,
    ]);
    expect(await remove(dataSource, Date.now() + 60_000)).toBe(0);
    const left = (await store.list({ limit: 10 })).items.map(({ id }) => id).sort();
    expect(left).toEqual(['run-3', 'talk-1']);
    expect([await count('agent_run_metadata'), await count('agent_run_interactions')]).toEqual([1, 0]);
    const journals = await dataSource.query<{ id: string }[]>('SELECT DISTINCT run_id AS id FROM agent_run_journal');
    expect(journals.map(({ id }) => id).sort()).toEqual(left);
    await submit(store, { id: 'run-1' });
    expect(await claim(store, 'run-1', 'worker-1')).toBe(1);
    await dispose();
  });
}

describe('A database of docs/guide/databases.md, better-sqlite3', () => {
  suite('better-sqlite3', async () => {
    const subject = await SqliteSubject.create();
    return { ...(await subject.open()), dispose: () => subject.dispose() };
  });
});

for (const type of SERVER_TYPES) {
  describeIf(isServerThere(type))(`A database of docs/guide/databases.md, ${type}`, () => {
    suite(type, async () => {
      const subject = await ServerSubject.create(type);
      return { ...(await subject.open()), dispose: () => subject.dispose() };
    });
  });
}
