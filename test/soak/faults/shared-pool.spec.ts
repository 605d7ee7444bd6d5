/** One pool for the host, its tools and the store, however small: B131. */
import type { DataSource, EntityManager } from 'typeorm';
import { scriptedModel } from '../../../lib/model/scripted/scripted-model.js';
import type { TypeOrmRunStore } from '../../../lib/stores/typeorm/typeorm-run.store.js';
import { upTo } from '../../../packages/contract/lib/scenario.js';
import { agent, engineOver, stopEngines, tool } from '../../support/engine-harness.js';
import { describeServers, ServerSubject } from '../../stores/typeorm/server-subject.js';

const start = { agent: 'support', prompt: 'go' };
const RUNS = 20;

describeServers('a pool on %s', (type) => {
  let subject: ServerSubject;
  beforeEach(async () => {
    subject = await ServerSubject.create(type);
    await subject.admin.query('CREATE TABLE visits (id varchar(100) PRIMARY KEY)');
  }, 60_000);
  afterEach(async () => {
    await stopEngines();
    await subject.dispose();
  }, 60_000);
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  const open = async (poolSize: number): Promise<{ store: TypeOrmRunStore; dataSource: DataSource }> =>
    subject.open({ statementTimeoutMs: 10_000 }, { poolSize });
  const visits = async (): Promise<number> => (await subject.admin.query<unknown[]>('SELECT id FROM visits')).length;
  const script = [{ calls: [{ name: 'visit' }, { name: 'visit' }] }, { text: 'done' }];
  const visit = (manager: Pick<EntityManager, 'query'>, id: string): Promise<unknown> =>
    manager.query(`INSERT INTO visits (id) VALUES ('${id}')`);

  it.each([1, 2, 10])(
    'B131: of %i serves twenty runs whose tools use it, statement by statement and in transactions',
    async (poolSize) => {
      const { store, dataSource } = await open(poolSize);
      const visiting = tool('visit', async (_input, { operationId }) => {
        await dataSource.query('SELECT 1');
        await dataSource.transaction((manager) => visit(manager, operationId));
        return 'seen';
      });
      const definition = agent(scriptedModel(script, { place: 'transcript' }), [visiting]);
      const engine = await engineOver(store, definition, { maxConcurrentRuns: RUNS });
      const ended = await Promise.all(upTo(RUNS).map(() => engine.runs.startAndWait(start)));
      expect(ended.map(({ status, attempt }) => [status, attempt])).toEqual(ended.map(() => ['completed', 1]));
      expect(await visits()).toBe(2 * RUNS);
      expect(engine.worker.status()).toMatchObject({ state: 'ready', activeRuns: 0 });
    },
  );

  // The transaction of each tool holds one of two connections while its method waits for another one.
  it('B131: of two, which transactional tools and their own statements use up, is given back by their timeout', async () => {
    const { store, dataSource } = await open(2);
    const entered: string[] = [];
    const visiting = tool(
      'visit',
      async (_input, { operationId, manager }: { operationId: string; manager?: unknown }) => {
        entered.push(operationId);
        await visit(manager as EntityManager, operationId);
        // Beside its transaction: that is what one should not do.
        await dataSource.query('SELECT 1');
        return 'seen';
      },
      { recovery: 'transactional', transactionTimeoutMs: 300 },
    );
    const engine = await engineOver(
      store,
      agent(scriptedModel([{ calls: [{ name: 'visit' }] }, { text: 'done' }], { place: 'transcript' }), [visiting]),
      { maxConcurrentRuns: 4 },
    );
    const ended = await Promise.all(upTo(4).map(() => engine.runs.startAndWait(start)));
    expect(ended.map(({ status }) => status)).toEqual(ended.map(() => 'completed'));
    const outputs = await Promise.all(
      ended.map(async ({ id }) =>
        (await engine.runs.messages(id)).flatMap((message) => (message.role === 'tool' ? message.content : [])),
      ),
    );
    const done = outputs.flat().filter(({ outcome }) => outcome === 'success');
    // What the model was told, is so.
    expect(await visits()).toBe(done.length);
    expect(outputs.flat()).toHaveLength(4);
    expect(await dataSource.query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('B131: whose statements fail one in ten is at rest afterwards, and no run is failed by it', async () => {
    const { store, dataSource } = await open(2);
    const failures = failing(dataSource, 10);
    const definition = agent(
      scriptedModel([{ calls: [{ name: 'look' }] }, { text: 'done' }], { place: 'transcript' }),
      [tool('look', () => 'seen', { recovery: 'manual' })],
    );
    const engine = await engineOver(store, definition, { maxConcurrentRuns: RUNS });
    const amount = 100;
    const ended = await Promise.all(
      upTo(amount).map((n) => engine.runs.startAndWait({ ...start, requestId: `r-${n}`, runId: `r-${n}` })),
    );
    expect(ended.map(({ status }) => status)).toEqual(ended.map(() => 'completed'));
    expect(failures()).toBeGreaterThan(20);
    expect(await subject.admin.query('SELECT DISTINCT status FROM agent_runs')).toEqual([{ status: 'completed' }]);
    expect(await dataSource.query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });
});

/** Each n-th statement of the store's is answered by the end of its connection. @returns how many were */
function failing(dataSource: DataSource, n: number): () => number {
  let statements = 0;
  interface Raw {
    execute?: (options: object, callback: (error: unknown) => void) => void;
    query: (config: { name?: string }, ...rest: unknown[]) => unknown;
    destroy?: () => void;
    connection?: { stream: { destroy(): void } };
  }
  const seen = new WeakSet<Raw>();
  const { pool, master } = dataSource.driver as unknown as Record<
    'pool' | 'master',
    { on(event: 'acquire', listener: (raw: Raw) => void): void } | undefined
  >;
  (pool ?? master)?.on('acquire', (raw) => {
    if (seen.has(raw)) return;
    seen.add(raw);
    const fails = (): boolean => (statements += 1) % n === 0;
    const { execute, query } = raw;
    if (execute) {
      raw.execute = (options, callback) => {
        if (!fails()) return execute.call(raw, options, callback);
        raw.destroy?.();
        callback(Object.assign(new Error('cut'), { code: 'PROTOCOL_CONNECTION_LOST', fatal: true }));
      };
    } else {
      raw.query = (config, ...rest) => {
        // Ours are prepared by name.
        if (config?.name !== undefined && fails()) raw.connection?.stream.destroy();
        return query.call(raw, config, ...rest);
      };
    }
  });
  return () => Math.floor(statements / n);
}
