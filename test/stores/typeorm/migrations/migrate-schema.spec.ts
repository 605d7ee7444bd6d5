import { DataSource, EntitySchema } from 'typeorm';
import { AgentRunsError } from '../../../../lib/errors/agent-runs.error.js';
import { agentRunsEntities } from '../../../../lib/stores/typeorm/agent-runs-entities.js';
import { agentRunsMigrations } from '../../../../lib/stores/typeorm/migrations/agent-runs-migrations.js';
import {
  migrateSchema,
  readSchema,
  SCHEMA_STEPS,
  type SchemaStep,
} from '../../../../lib/stores/typeorm/migrations/migrate-schema.js';
import { databaseOf } from '../../../../lib/stores/typeorm/database-of.js';
import { TypeOrmRunStore } from '../../../../lib/stores/typeorm/typeorm-run.store.js';
import { appendNotes, journal, notesOf, running } from '../../../../packages/contract/lib/scenario.js';
import { SqliteSubject } from '../sqlite-subject.js';

const tables = [
  'agent_run_inbox',
  'agent_run_interactions',
  'agent_run_journal',
  'agent_run_metadata',
  'agent_run_workers',
  'agent_runs',
  'agent_runs_schema',
  'agent_sessions',
];

/** A step of a later version: one more column, which readers of this version need not know. */
const laterStep: SchemaStep = {
  version: 2,
  minReader: 1,
  timestamp: 1_796_000_000_000,
  statements: () => [`ALTER TABLE "agent_runs" ADD COLUMN "note" text`],
};

describe('the schema on SQLite', () => {
  let subject: SqliteSubject;
  let dataSource: DataSource;

  beforeEach(async () => {
    subject = await SqliteSubject.create();
    dataSource = await subject.connect();
  });

  afterEach(async () => {
    if (dataSource.isInitialized) await dataSource.destroy();
    await subject.dispose();
  });

  const tableNames = async (): Promise<string[]> =>
    (
      await dataSource.query<{ name: string }[]>(
        `SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'agent%' ORDER BY name`,
      )
    ).map(({ name }) => name);

  it('CFG-10: is made when a store opens that may migrate, and left alone by the next one', async () => {
    for (let round = 0; round < 2; round += 1) {
      const store = new TypeOrmRunStore(dataSource, { migrate: true });
      await store.open();
      expect(await tableNames()).toEqual(tables);
      expect(await dataSource.query('SELECT * FROM agent_runs_schema')).toEqual([{ version: 1, min_reader: 1 }]);
      await store.close();
    }
  });

  it('CFG-10: is not made by a store that must not migrate: it says what to do', async () => {
    const store = new TypeOrmRunStore(dataSource, { migrate: false });
    await expect(store.open()).rejects.toThrow(
      /tables of this database are missing.*agentRunsMigrations.*migrate: true/,
    );
    expect(await tableNames()).toEqual([]);
  });

  it('CFG-10: is made by default, except in production', async () => {
    const before = process.env['NODE_ENV'];
    process.env['NODE_ENV'] = 'production';
    try {
      await expect(new TypeOrmRunStore(dataSource).open()).rejects.toThrow(/are missing/);
    } finally {
      process.env['NODE_ENV'] = before;
    }
    await new TypeOrmRunStore(dataSource).open();
    expect(await tableNames()).toEqual(tables);
  });

  it('STO-6: made by a newer package is refused, naming both versions, and nothing is changed', async () => {
    await new TypeOrmRunStore(dataSource, { migrate: true }).open();
    await dataSource.query('INSERT INTO agent_runs_schema (version, min_reader) VALUES (7, 5)');
    const refusal: unknown = await new TypeOrmRunStore(dataSource, { migrate: true })
      .open()
      .catch((error: unknown) => error);
    expect(AgentRunsError.is(refusal, 'NEWER_SCHEMA')).toBe(true);
    expect((refusal as Error).message).toMatch(
      /version 7, which needs a package that knows version 5; this package knows version 1/,
    );
  });

  it('STO-6: made by a newer package that only added to it is worked with', async () => {
    await new TypeOrmRunStore(dataSource, { migrate: true }).open();
    await dataSource.query('INSERT INTO agent_runs_schema (version, min_reader) VALUES (2, 1)');
    const store = new TypeOrmRunStore(dataSource, { migrate: false });
    await store.open();
    expect((await running(store)).status).toBe('running');
  });

  it('STO-6: of an older version is brought to the newest, with the runs that are in it', async () => {
    const store = new TypeOrmRunStore(dataSource, { migrate: true });
    await store.open();
    await running(store);
    await appendNotes(store, 'run-1', 1, ['kept']);
    const database = databaseOf(dataSource, 1_000);
    await database.open();
    await database.changeSchema(() => migrateSchema(database.dialect, [...SCHEMA_STEPS, laterStep]));
    expect(await database.read('read', () => readSchema(database.dialect))).toEqual({ version: 2, minReader: 1 });
    expect(await dataSource.query('SELECT id, note FROM agent_runs')).toEqual([{ id: 'run-1', note: null }]);
    await appendNotes(store, 'run-1', 1, ['new']);
    expect(notesOf(await journal(store, 'run-1'))).toEqual(['kept', 'new']);
  });

  it('STO-6: that stopped half way is finished by the next try', async () => {
    const broken: SchemaStep = {
      ...laterStep,
      statements: () => [...laterStep.statements(sqlite), 'ALTER TABLE nowhere ADD COLUMN x'],
    };
    const sqlite = { type: 'better-sqlite3' as const, qualify: (name: string) => name };
    const database = databaseOf(dataSource, 1_000);
    await database.open();
    await expect(
      database.changeSchema(() => migrateSchema(database.dialect, [...SCHEMA_STEPS, broken])),
    ).rejects.toMatchObject({ code: 'STORE_BROKEN' });
    expect(await tableNames()).toEqual([]);
    await database.changeSchema(() => migrateSchema(database.dialect, [...SCHEMA_STEPS, laterStep]));
    expect(await tableNames()).toEqual(tables);
  });

  it('STO-6: is made once when several processes start at the same moment', async () => {
    const others = await Promise.all(Array.from({ length: 4 }, () => subject.connect()));
    const stores = [dataSource, ...others].map((one) => new TypeOrmRunStore(one, { migrate: true }));
    await Promise.all(stores.map((store) => store.open()));
    expect(await dataSource.query('SELECT * FROM agent_runs_schema')).toEqual([{ version: 1, min_reader: 1 }]);
    for (const store of stores) await store.close();
    for (const other of others) await other.destroy();
  });

  it("CFG-10: is made by TypeORM's migration runner just as well, before or after the store's own", async () => {
    await dataSource.destroy();
    dataSource = await subject.connect({ migrations: agentRunsMigrations('better-sqlite3') });
    await dataSource.runMigrations();
    expect(await tableNames()).toEqual(tables);
    const store = new TypeOrmRunStore(dataSource, { migrate: false });
    await store.open();
    expect((await running(store)).status).toBe('running');
    await dataSource.undoLastMigration();
    expect(await tableNames()).toEqual([]);
    await new TypeOrmRunStore(dataSource, { migrate: true }).open();
    await dataSource.runMigrations();
    expect(await tableNames()).toEqual(tables);
  });

  it('CFG-10: is described by the entities so exactly that the schema builder finds nothing to do', async () => {
    await new TypeOrmRunStore(dataSource, { migrate: true }).open();
    await dataSource.destroy();
    dataSource = await subject.connect({ entities: agentRunsEntities('better-sqlite3') });
    const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
    expect(upQueries.map(({ query }) => query)).toEqual([]);
  });

  it('CFG-10: and the entities read what the store wrote', async () => {
    const store = new TypeOrmRunStore(dataSource, { migrate: true });
    await store.open();
    const run = await running(store);
    await dataSource.destroy();
    dataSource = await subject.connect({ entities: agentRunsEntities('better-sqlite3') });
    const [row] = await dataSource.getRepository('AgentRun').find();
    expect(row).toMatchObject({ id: 'run-1', status: 'running', attempt: 1, created_at: run.createdAt });
  });

  it("CFG-10: is left alone by the synchronisation of a host's own entities", async () => {
    await new TypeOrmRunStore(dataSource, { migrate: true }).open();
    await dataSource.destroy();
    const orders = new EntitySchema({ name: 'Order', columns: { id: { type: 'integer', primary: true } } });
    dataSource = await subject.connect({ entities: [orders], synchronize: true });
    expect(await tableNames()).toEqual(tables);
    expect(dataSource.entityMetadatas.map(({ name }) => name)).toEqual(['Order']);
    const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
    expect(upQueries).toEqual([]);
  });
});
