import { EntitySchema } from 'typeorm';
import { agentRunsEntities } from '../../../../lib/stores/typeorm/agent-runs-entities.js';
import { agentRunsMigrations } from '../../../../lib/stores/typeorm/migrations/agent-runs-migrations.js';
import {
  migrateSchema,
  SCHEMA_STEPS,
  type SchemaStep,
} from '../../../../lib/stores/typeorm/migrations/migrate-schema.js';
import { databaseOf } from '../../../../lib/stores/typeorm/database-of.js';
import { TypeOrmRunStore } from '../../../../lib/stores/typeorm/typeorm-run.store.js';
import { TABLES } from '../../../../lib/stores/typeorm/tables.js';
import {
  anInteraction,
  appendNotes,
  ask,
  journal,
  notesOf,
  running,
  settleInSession,
} from '../../../../packages/contract/lib/scenario.js';
import { describeServers, ServerSubject } from '../server-subject.js';

const laterStep: SchemaStep = {
  version: 2,
  minReader: 1,
  timestamp: 1_796_000_000_000,
  statements: () => ['ALTER TABLE agent_runs ADD COLUMN note text'],
};

describeServers('the schema on %s', (type) => {
  let subject: ServerSubject;

  beforeEach(async () => {
    // These tests make the tables themselves.
    await (await ServerSubject.create(type)).dispose(false);
    subject = await ServerSubject.create(type);
  }, 60_000);

  afterEach(() => subject.dispose(false), 60_000);
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  const tables = async (): Promise<number> =>
    (
      await subject.admin.query<unknown[]>(
        `SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'agent%' AND table_schema = ${type === 'postgres' ? `'public'` : 'DATABASE()'}`,
      )
    ).length;
  const versions = (): Promise<unknown> =>
    subject.admin.query('SELECT version, min_reader FROM agent_runs_schema ORDER BY version');

  it('CFG-10: is made when a store opens that may migrate, and not by one that must not', async () => {
    const dataSource = await subject.connect();
    await expect(new TypeOrmRunStore(dataSource, { migrate: false }).open()).rejects.toThrow(
      /are missing.*migrate: true/,
    );
    expect(await tables()).toBe(0);
    await new TypeOrmRunStore(dataSource, { migrate: true }).open();
    await new TypeOrmRunStore(dataSource, { migrate: false }).open();
    expect(await tables()).toBe(8);
    expect(await versions()).toEqual([{ version: 1, min_reader: 1 }]);
    await dataSource.destroy();
  });

  it('B127: has no column that a driver would parse as JSON: a text that looks like it stays a text', async () => {
    await subject.open();
    const mine = `table_name LIKE 'agent%' AND table_schema = ${type === 'postgres' ? `'public'` : 'DATABASE()'}`;
    const types = await subject.admin.query<{ type: string }[]>(
      `SELECT DISTINCT data_type AS type FROM information_schema.columns WHERE ${mine}`,
    );
    expect(types.length).toBeGreaterThan(1);
    expect(types.filter(({ type: one }) => /json/i.test(one))).toEqual([]);
    // MariaDB's JSON is a text with this check, by which drivers know it.
    if (type === 'mariadb')
      expect(
        await subject.admin.query(
          `SELECT constraint_name FROM information_schema.check_constraints WHERE constraint_schema = DATABASE() AND check_clause LIKE '%json_valid%'`,
        ),
      ).toEqual([]);
  });

  it('STO-6: made by a newer package is refused, naming both versions', async () => {
    const { dataSource } = await subject.open();
    await dataSource.query('INSERT INTO agent_runs_schema (version, min_reader) VALUES (7, 5)');
    const refused = new TypeOrmRunStore(dataSource).open();
    await expect(refused).rejects.toMatchObject({ code: 'NEWER_SCHEMA' });
    await expect(refused).rejects.toThrow(/version 7, .* knows version 5; this package knows version 1/);
  });

  it('STO-6: of an older version is brought to the newest, with the runs that are in it', async () => {
    const { dataSource, store } = await subject.open();
    await running(store);
    await appendNotes(store, 'run-1', 1, ['kept']);
    const database = databaseOf(dataSource, 5_000);
    await database.open();
    await database.changeSchema(() => migrateSchema(database.dialect, [...SCHEMA_STEPS, laterStep]));
    await database.changeSchema(() => migrateSchema(database.dialect, [...SCHEMA_STEPS, laterStep]));
    expect(await dataSource.query('SELECT id, note FROM agent_runs')).toEqual([{ id: 'run-1', note: null }]);
    await appendNotes(store, 'run-1', 1, ['new']);
    expect(notesOf(await journal(store, 'run-1'))).toEqual(['kept', 'new']);
  });

  it('STO-6: is worked with by processes that have prepared their statements before a newer package adds a column', async () => {
    const { dataSource, store } = await subject.open({}, { poolSize: 1 });
    const use = async (id: string): Promise<void> => {
      await running(store, { id, sessionId: `talk-${id}` });
      await ask(store, [anInteraction({ id: `ask-${id}`, runId: id })], id);
      await settleInSession(store, id, 'completed');
      await store.session(`talk-${id}`);
      await store.interactions({ limit: 10 });
      await store.list({ limit: 10 });
    };
    await use('before');
    for (const { table } of TABLES) await dataSource.query(`ALTER TABLE ${table} ADD COLUMN note text`);
    await use('after');
    expect((await store.load('after'))?.run.status).toBe('completed');
  });

  it('STO-6: that stopped half way is finished by the next try', async () => {
    const dataSource = await subject.connect();
    const database = databaseOf(dataSource, 5_000);
    await database.open();
    const broken: SchemaStep = { ...laterStep, statements: () => ['ALTER TABLE nowhere ADD COLUMN x int'] };
    await expect(
      database.changeSchema(() => migrateSchema(database.dialect, [...SCHEMA_STEPS, broken])),
    ).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await database.changeSchema(() => migrateSchema(database.dialect, [...SCHEMA_STEPS, laterStep]));
    expect(await versions()).toEqual([
      { version: 1, min_reader: 1 },
      { version: 2, min_reader: 1 },
    ]);
    await dataSource.destroy();
  });

  it('STO-6: is made once when several processes start at the same moment', async () => {
    await Promise.all(Array.from({ length: 4 }, () => subject.open({ migrate: true })));
    expect(await versions()).toEqual([{ version: 1, min_reader: 1 }]);
  });

  it("CFG-10: is made by TypeORM's migration runner just as well", async () => {
    const dataSource = await subject.connect({ migrations: agentRunsMigrations(type) });
    await dataSource.runMigrations();
    expect(await tables()).toBe(8);
    const store = new TypeOrmRunStore(dataSource, { migrate: false });
    await store.open();
    expect((await running(store)).status).toBe('running');
    await dataSource.undoLastMigration();
    expect(await tables()).toBe(0);
    await dataSource.destroy();
  });

  it('CFG-10: is described by the entities so exactly that the schema builder finds nothing to do', async () => {
    const { store } = await subject.open();
    const run = await running(store);
    const dataSource = await subject.connect({ entities: agentRunsEntities(type) });
    const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
    expect(upQueries.map(({ query }) => query)).toEqual([]);
    const [row] = await dataSource.getRepository('AgentRun').find();
    expect(row).toMatchObject({ id: 'run-1', status: 'running', attempt: 1, created_at: run.createdAt });
    await dataSource.destroy();
  });

  it("CFG-10: is left alone by the synchronisation of a host's own entities", async () => {
    await subject.open();
    const orders = new EntitySchema({ name: 'orders', columns: { id: { type: 'int', primary: true } } });
    const dataSource = await subject.connect({ entities: [orders], synchronize: true });
    expect(await tables()).toBe(8);
    const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
    expect(upQueries).toEqual([]);
    await dataSource.destroy();
  });
});

describe('the schema on postgres', () => {
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  it("CFG-10: stands in the schema of the host's data source", async () => {
    const subject = await ServerSubject.create('postgres');
    await subject.admin.query('CREATE SCHEMA "My Runs"');
    const { store } = await subject.open({}, { schema: 'My Runs' });
    await running(store);
    await appendNotes(store, 'run-1', 1, ['a']);
    const rows = await subject.admin.query('SELECT id FROM "My Runs".agent_runs');
    expect(rows).toEqual([{ id: 'run-1' }]);
    await subject.admin.query('DROP SCHEMA "My Runs" CASCADE');
    await subject.dispose();
  });
});

describe('the schema on mariadb', () => {
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  it('B125: is refused through a connection that cannot carry an emoji, and is not touched by the defaults of the server', async () => {
    await (await ServerSubject.create('mariadb')).dispose(false);
    const subject = await ServerSubject.create('mariadb');
    await subject.admin.query(`ALTER DATABASE ${subject.database} CHARACTER SET latin1`);
    const { store } = await subject.open();
    await running(store);
    await appendNotes(store, 'run-1', 1, ['😀', 'ü', '\ud83d']);
    expect(notesOf(await journal(store, 'run-1'))).toEqual(['😀', 'ü', '\ud83d']);
    const latin = await subject.connect({ charset: 'latin1' });
    await expect(new TypeOrmRunStore(latin).open()).rejects.toThrow(/charset: 'utf8mb4'/);
    await latin.destroy();
    await subject.admin.query(`ALTER DATABASE ${subject.database} CHARACTER SET utf8mb4`);
    await subject.dispose(false);
  });
});
