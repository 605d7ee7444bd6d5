/** R235: tenant code of the host changes the session of a pooled connection and gives it back. */
import type { DataSource, EntityManager } from 'typeorm';
import { scriptedModel } from '../../../../lib/model/scripted/scripted-model.js';
import { agentRunsMigrations } from '../../../../lib/stores/typeorm/migrations/agent-runs-migrations.js';
import { TypeOrmRunStore } from '../../../../lib/stores/typeorm/typeorm-run.store.js';
import {
  anInteraction,
  appendNotes,
  ask,
  beat,
  claim,
  journal,
  note,
  notesOf,
  OFFER,
  running,
  submit,
  totalsOf,
  upTo,
} from '../../../../packages/contract/lib/scenario.js';
import { agent, engineOver, stopEngines, tool } from '../../../support/engine-harness.js';
import { until } from '../../../support/until.js';
import { describeServers, ServerSubject } from '../server-subject.js';

const POOL = 4;

describeServers('a pooled connection whose session the host has changed, on %s', (type) => {
  let subject: ServerSubject;
  let other: string;

  beforeEach(async () => {
    // Databases with tables that others may not use, and without any in the place of the other tenant.
    subject = await ServerSubject.create(type);
    other = type === 'postgres' ? 'tenant_b' : `${subject.database}_b`;
    await subject.admin.query(`CREATE ${type === 'postgres' ? 'SCHEMA' : 'DATABASE'} ${other}`);
  }, 60_000);

  afterEach(async () => {
    await stopEngines();
    await subject.dispose();
    await subject.admin.query(type === 'postgres' ? `DROP SCHEMA ${other} CASCADE` : `DROP DATABASE ${other}`);
  }, 60_000);
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  const toOther = (): string => (type === 'postgres' ? `SET search_path TO ${other}` : `USE ${other}`);

  /** All connections of a pool, as the host leaves them behind. */
  async function change(dataSource: DataSource, sql = toOther(), count = POOL): Promise<void> {
    const runners = upTo(count).map(() => dataSource.createQueryRunner());
    await Promise.all(runners.map((runner) => runner.connect()));
    for (const runner of runners) await runner.query(sql);
    await Promise.all(runners.map((runner) => runner.release()));
  }

  async function makeTablesThere(): Promise<void> {
    const there = type === 'postgres' ? { schema: other } : { database: other };
    const dataSource = await subject.connect(there);
    await new TypeOrmRunStore(dataSource, { migrate: true }).open();
    await dataSource.destroy();
  }

  const rowsThere = async (): Promise<number> => {
    let rows = 0;
    for (const table of ['agent_runs', 'agent_run_journal', 'agent_run_workers', 'agent_run_inbox', 'agent_sessions']) {
      const [row] = await subject.admin.query<{ n: unknown }[]>(`SELECT COUNT(*) AS n FROM ${other}.${table}`);
      rows += Number(row?.n);
    }
    return rows;
  };

  async function useEverything(store: TypeOrmRunStore): Promise<void> {
    await Promise.all(upTo(6).map((n) => running(store, { id: `run-${n}`, sessionId: `talk-${n}` })));
    await Promise.all(upTo(6).map((n) => appendNotes(store, `run-${n}`, 1, ['a'])));
    await submit(store, { id: 'tagged', metadata: { tenant: 'a' } });
    await ask(store, [anInteraction({ id: 'ask-1', runId: 'run-1' })], 'run-1');
    await beat(store, 'worker-9');
    expect(notesOf(await journal(store, 'run-2'))).toEqual(['a']);
    const found = {
      runs: (await store.list({ limit: 20 })).items.length,
      tagged: (await store.list({ limit: 20, metadata: { tenant: 'a' } })).items.length,
      asks: (await store.interactions({ limit: 20 })).items.length,
      session: (await store.session('talk-1'))?.headRunId,
      pending: await store.countPending(10),
      workers: (await store.liveWorkers()).length,
      rows: (await store.metrics()).journalRows,
    };
    expect(found).toEqual({
      runs: 7,
      tagged: 1,
      asks: 1,
      session: 'run-1',
      pending: 1,
      workers: expect.any(Number),
      rows: expect.any(Number),
    });
    const due = { offers: [OFFER], contractVersion: 1, limit: 9, takeovers: true, held: ['run-1'] };
    expect((await store.due(due)).claimable.map(({ id }) => id)).toEqual(['tagged']);
    await store.overdue({ liveOffers: [OFFER], contractVersion: 1, unofferedAfterMs: 1, limit: 5 });
    await store.retireWorker('worker-9');
  }

  it('R235: is used like any other: each statement names where the tables are', async () => {
    const { store, dataSource } = await subject.open({}, { poolSize: POOL });
    await change(dataSource);
    await useEverything(store);
  });

  it('R235: leads nowhere else, though the other tenant has the same tables', async () => {
    const { store, dataSource } = await subject.open({}, { poolSize: POOL });
    await makeTablesThere();
    await change(dataSource);
    await useEverything(store);
    expect(await rowsThere()).toBe(0);
  });

  it('R235: is where the host begins a transaction: the run that joins it is written to our tables', async () => {
    const { store, dataSource } = await subject.open({}, { poolSize: POOL });
    await makeTablesThere();
    const { runs } = await engineOver(store, agent(scriptedModel()), { worker: false });
    await dataSource.transaction(async (manager) => {
      if (type === 'postgres') await manager.query(`SET LOCAL search_path TO ${other}`);
      else await manager.query(toOther());
      await runs.start({ agent: 'support', prompt: 'hello', runId: 'joined' }, { transaction: manager });
    });
    expect((await store.load('joined'))?.run.status).toBe('pending');
    expect(await rowsThere()).toBe(0);
  });

  it('R235: is where a transactional tool runs: its result is recorded in our tables', async () => {
    const { store, dataSource } = await subject.open({}, { poolSize: POOL });
    await makeTablesThere();
    await running(store);
    await change(dataSource);
    const transaction = store.openToolTransaction();
    await transaction.begin();
    await transaction.commit({
      runId: 'run-1',
      attempt: 1,
      firstSequence: 3,
      entries: [note('done')],
      totals: totalsOf(1),
    });
    expect(notesOf(await journal(store, 'run-1'))).toEqual(['done']);
    expect(await rowsThere()).toBe(0);
  });

  it('R235: does not mislead the migrations of a host', async () => {
    const dataSource = await subject.connect({ migrations: agentRunsMigrations(type), poolSize: POOL });
    for (const { name } of await tablesHere()) await subject.admin.query(`DROP TABLE ${name}`);
    await change(dataSource);
    const runner = dataSource.createQueryRunner();
    for (const Migration of agentRunsMigrations(type)) await new Migration().up(runner);
    await runner.release();
    expect(await tablesHere()).toHaveLength(8);
    await dataSource.destroy();
  });

  async function tablesHere(): Promise<{ name: string }[]> {
    const here = type === 'postgres' ? `'public'` : 'DATABASE()';
    return subject.admin.query(
      `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = ${here} AND table_name LIKE 'agent%'`,
    );
  }

  it('R235: is given up for another one where its role may not use the tables; at worst an attempt fails, and no worker stops', async () => {
    const { options, without, drop } = await roles();
    const { store, dataSource } = await subject.open({}, { poolSize: POOL, ...options });
    await change(dataSource, without);
    await useEverything(store);
    const tools = [tool('pay', () => 'paid', { recovery: 'transactional' })];
    const model = scriptedModel([{ calls: [{ name: 'pay', args: {} }] }, { text: 'done' }], { place: 'transcript' });
    const engine = await engineOver(store, agent(model, tools), { pollMs: 20, pollIdleMs: 20 });
    for (const n of upTo(3)) {
      await change(dataSource, without);
      const run = await engine.runs.start({ agent: 'support', prompt: 'hello', runId: `paid-${n}` });
      await until(async () => (await store.load(run.id))?.run.status === 'completed', 'the run to complete');
    }
    expect(engine.worker.status().state).toBe('ready');
    await drop();
  });

  it('R235: of a transactional tool that took a role itself is not given to the next one', async () => {
    const { options, without, drop } = await roles();
    const { store } = await subject.open({}, { poolSize: POOL, ...options });
    await running(store);
    const result = { runId: 'run-1', attempt: 1, firstSequence: 3, entries: [note('done')], totals: totalsOf(1) };
    const transaction = store.openToolTransaction();
    await ((await transaction.begin()) as EntityManager).query(without);
    await expect(transaction.commit(result)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    const again = store.openToolTransaction();
    await again.begin();
    await again.commit(result);
    expect(notesOf(await journal(store, 'run-1'))).toEqual(['done']);
    await drop();
  });

  it('STO-4: tables that are gone for a while are waited for, as the database is', async () => {
    const { store } = await subject.open({}, { poolSize: 2 });
    await running(store);
    const rename = (from: string, to: string): Promise<unknown> =>
      subject.admin.query(`ALTER TABLE ${from} RENAME TO ${to}`);
    await rename('agent_runs', 'agent_runs_away');
    for (const work of [store.load('run-1'), beat(store, 'worker-1').then(() => claim(store, 'run-1', 'worker-1'))])
      await expect(work).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        message: expect.stringMatching(/not there/),
      });
    await rename('agent_runs_away', 'agent_runs');
    await appendNotes(store, 'run-1', 1, ['a']);
    expect(notesOf(await journal(store, 'run-1'))).toEqual(['a']);
  });

  /** A login that may use the tables by a role alone, which a statement takes away from its session. */
  async function roles(): Promise<{ options: object; without: string; drop(): Promise<void> }> {
    if (type === 'postgres') return { options: {}, without: 'SET ROLE pg_monitor', drop: async () => undefined };
    const name = `u_${subject.database.slice(-12)}`;
    const role = `r_${subject.database.slice(-12)}`;
    for (const sql of [
      `CREATE ROLE ${role}`,
      `GRANT ALL ON ${subject.database}.* TO ${role}`,
      `CREATE USER ${name}@'%' IDENTIFIED BY 'secret'`,
      `GRANT ${role} TO ${name}@'%'`,
      `SET DEFAULT ROLE ${role} FOR ${name}@'%'`,
    ])
      await subject.admin.query(sql);
    return {
      options: { username: name, password: 'secret' },
      without: 'SET ROLE NONE',
      drop: async () => {
        await subject.admin.query(`DROP USER ${name}@'%'`);
        await subject.admin.query(`DROP ROLE ${role}`);
      },
    };
  }
});

describe('the schema of the tables on postgres', () => {
  let subject: ServerSubject;
  beforeEach(async () => {
    subject = await ServerSubject.create('postgres');
    await subject.admin.query('CREATE SCHEMA app');
  }, 60_000);
  afterEach(async () => {
    await subject.dispose();
    await subject.admin.query('DROP SCHEMA app CASCADE');
  }, 60_000);
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  const searching = (path: string): object => ({ extra: { options: `-c search_path=${path}` } });

  it('CFG-10: is the first one of the search path that the data source has, where it names none', async () => {
    const { store } = await subject.open({}, searching('nowhere,app'));
    await running(store);
    expect(await subject.admin.query('SELECT id FROM app.agent_runs')).toEqual([{ id: 'run-1' }]);
  });

  it.each([
    ['that it names', { schema: 'nowhere' }, /schema "nowhere" .* does not exist .* CREATE SCHEMA "nowhere"/],
    ['of its search path', searching('nowhere'), /No schema of the connection's search_path exists/],
  ])(
    'CFG-10: that does not exist is a configuration error, and no damaged file: the one %s',
    async (_, options, told) => {
      const dataSource = await subject.connect(options);
      const opened = new TypeOrmRunStore(dataSource).open();
      await expect(opened).rejects.toMatchObject({ code: 'INVALID_CONFIGURATION' });
      await expect(opened).rejects.toThrow(told);
      await dataSource.destroy();
    },
  );
});
