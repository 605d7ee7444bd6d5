import { EntitySchema, type DataSource, type EntityManager } from 'typeorm';
import type { AppendRequest, ToolTransaction } from '../../../../lib/contracts/ports/run-store.port.js';
import { AgentRunsError } from '../../../../lib/errors/agent-runs.error.js';
import type { TypeOrmRunStore } from '../../../../lib/stores/typeorm/typeorm-run.store.js';
import {
  aRun,
  change,
  journal,
  loaded,
  note,
  notesOf,
  running,
  totalsOf,
} from '../../../../packages/contract/lib/scenario.js';
import { until } from '../../../support/until.js';
import { FAREWELLS } from '../farewells.js';
import { describeServers, ServerSubject, serverUrl } from '../server-subject.js';
import { TcpProxy } from '../tcp-proxy.js';

const orderEntity = new EntitySchema<{ id: number; note: string | null }>({
  name: 'Order',
  tableName: 'orders',
  columns: { id: { type: 'int', primary: true }, note: { type: 'text', nullable: true } },
});

describeServers('the transaction of a transactional tool on %s', (type) => {
  let subject: ServerSubject;
  let proxy: TcpProxy;
  let store: TypeOrmRunStore;
  let dataSource: DataSource;
  let tool: ToolTransaction;

  beforeEach(async () => {
    subject = await ServerSubject.create(type);
    const { hostname, port } = serverUrl(type);
    proxy = await TcpProxy.to(hostname, Number(port));
    ({ store, dataSource } = await subject.open(
      { statementTimeoutMs: 2_000 },
      {
        host: '127.0.0.1',
        port: proxy.port,
        entities: [orderEntity],
      },
    ));
    await subject.admin.query('CREATE TABLE orders (id int PRIMARY KEY, note text)');
    await running(store);
    tool = store.openToolTransaction();
  }, 60_000);

  afterEach(async () => {
    proxy.fateOf = undefined;
    proxy.answerOf = undefined;
    proxy.endPartition();
    await tool.rollback().catch(() => undefined);
    await subject.dispose();
    await proxy.close();
  }, 60_000);
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  const result = (overrides: Partial<AppendRequest> = {}): AppendRequest => ({
    runId: 'run-1',
    attempt: 1,
    firstSequence: 3,
    entries: [note('result')],
    totals: totalsOf(1),
    ...overrides,
  });
  const begin = async (): Promise<EntityManager> => (await tool.begin()) as EntityManager;
  const orders = async (): Promise<number[]> =>
    (await subject.admin.query<{ id: number }[]>('SELECT id FROM orders ORDER BY id')).map(({ id }) => id);
  const sequence = async (): Promise<number> => (await loaded(store, 'run-1')).sequence;
  const notes = async (): Promise<unknown[]> => notesOf(await journal(store, 'run-1'));

  it("JRN-5b: commits the tool's rows and its journal entry together, and gives its connection back", async () => {
    const manager = await begin();
    await manager.getRepository(orderEntity).save({ id: 1, note: 'paid' });
    expect(await orders()).toEqual([]);
    await tool.commit(result());
    expect(await orders()).toEqual([1]);
    expect(await notes()).toEqual(['result']);
    await tool.commit(result());
    await tool.rollback();
    for (let n = 0; n < 15; n += 1) {
      const next = store.openToolTransaction();
      await next.begin();
      await next.rollback();
    }
  });

  it('JRN-5b: rolls both back', async () => {
    const manager = await begin();
    await manager.getRepository(orderEntity).insert({ id: 1 });
    await tool.rollback();
    await tool.rollback();
    expect(await orders()).toEqual([]);
    expect(await notes()).toEqual([]);
    await expect(tool.commit(result())).rejects.toMatchObject({ code: 'STORE_CONFLICT' });
  });

  it.each([
    ['a stale attempt', { attempt: 2 }, 'FENCED'],
    ['a wrong sequence', { firstSequence: 9 }, 'SEQUENCE_CONFLICT'],
  ])('I3: %s is refused at the commit, and the rows of the tool are gone', async (_what, overrides, code) => {
    const manager = await begin();
    await manager.getRepository(orderEntity).insert({ id: 1 });
    await expect(tool.commit(result(overrides))).rejects.toMatchObject({ code });
    expect(await orders()).toEqual([]);
    expect(await notes()).toEqual([]);
  });

  /** As a call of the tool does. @returns what becomes of it; `shown` is what the model would see, of a tool that the database has not refused */
  const call = async (id: number): Promise<'committed' | 'taken back' | 'shown'> => {
    const passes = (error: unknown): boolean => AgentRunsError.is(error) && error.family === 'store' && error.retryable;
    tool = store.openToolTransaction();
    try {
      const manager = await begin();
      try {
        await manager.getRepository(orderEntity).insert({ id });
      } catch (error) {
        if (tool.isConflict(error)) return 'taken back';
        // A rollback that fails says that it was the database.
        await tool.rollback();
        return 'shown';
      }
      await tool.commit(result({ firstSequence: (await sequence()) + 1 }));
      return 'committed';
    } catch (error) {
      return passes(error) ? 'taken back' : 'shown';
    }
  };

  it('B130: whenever the server ends its session, it is committed with its entry or taken back, and never shown to the model', async () => {
    const outcomes: string[] = [];
    // The n-th answer of its session brings the end of it.
    for (let n = 1; ; n += 1) {
      let answers = 0;
      proxy.answerOf = (packet) => ((answers += 1) === n ? Buffer.concat([packet, FAREWELLS[type]]) : packet);
      outcomes.push(await call(n));
      proxy.answerOf = undefined;
      if (answers < n) break;
    }
    const committed = outcomes.flatMap((outcome, index) => (outcome === 'committed' ? [index + 1] : []));
    expect(outcomes).not.toContain('shown');
    expect(outcomes).toContain('taken back');
    expect(await orders()).toEqual(committed);
    expect(await notes()).toEqual(committed.map(() => 'result'));
  });

  it("STO-4: is not the tool's failure where there is no connection to be had", async () => {
    await dataSource.destroy();
    await expect(tool.begin()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    await dataSource.initialize();
    await tool.rollback();
    tool = store.openToolTransaction();
    await begin();
  });

  it('RUN-2: a cancel does not wait for the method, and fences its commit', async () => {
    const manager = await begin();
    await manager.getRepository(orderEntity).insert({ id: 1 });
    await change(store, 'run-1', { status: 'cancelled' }, [{ type: 'run.cancelled', at: 1 }]);
    await expect(tool.commit(result({ firstSequence: 4 }))).rejects.toMatchObject({ code: 'FENCED' });
    expect(await orders()).toEqual([]);
  });

  it('JRN-5b: `context.manager` fails clearly after the tool has ended, and cannot end the transaction', async () => {
    const manager = await begin();
    const repository = manager.getRepository(orderEntity);
    await expect(manager.query('COMMIT')).rejects.toThrow(/tried to end or begin/);
    await expect(manager.queryRunner?.rollbackTransaction()).rejects.toThrow(/tried to roll back/);
    await manager.transaction((nested) => nested.getRepository(orderEntity).insert({ id: 1 }));
    await tool.commit(result());
    await expect(repository.insert({ id: 9 })).rejects.toThrow(/used after the tool had ended/);
    await expect(manager.query('SELECT 1')).rejects.toThrow(/used after the tool had ended/);
    expect(await orders()).toEqual([1]);
  });

  it('decision a-tool-in-a-transaction: a deadlock that killed the transaction is a conflict, though the method swallowed it', async () => {
    await subject.admin.query('INSERT INTO orders (id) VALUES (1), (2)');
    const manager = await begin();
    await manager.query(`UPDATE orders SET note = 'tool' WHERE id = 1`);
    const other = subject.admin.createQueryRunner();
    await other.startTransaction();
    await other.query(`UPDATE orders SET note = 'other' WHERE id = 2`);
    // More rows make it the costlier victim on MariaDB.
    await other.query(`INSERT INTO orders (id) VALUES (11), (12), (13), (14), (15), (16), (17), (18), (19)`);
    const theirs = other.query(`UPDATE orders SET note = 'other' WHERE id = 1`).catch((error: unknown) => error);
    await new Promise((next) => setTimeout(next, 100));
    const swallowed: unknown = await manager
      .query(`UPDATE orders SET note = 'tool' WHERE id = 2`)
      .catch((error: unknown) => error);
    const lostByOther: unknown = await theirs;
    await other.rollbackTransaction();
    await other.release();
    if (tool.isConflict(swallowed)) {
      await expect(tool.commit(result())).rejects.toMatchObject({ code: 'STORE_CONFLICT' });
      expect(await notes()).toEqual([]);
    } else {
      expect(tool.isConflict(lostByOther)).toBe(true);
      await tool.commit(result());
      expect(await notes()).toEqual(['result']);
    }
  });

  it('JRN-5b: a lost answer to COMMIT is settled by the journal row', async () => {
    const manager = await begin();
    await manager.getRepository(orderEntity).insert({ id: 1 });
    let commits = 0;
    proxy.fateOf = (packet) =>
      /COMMIT(?!TED)/.test(packet.toString('latin1')) && (commits += 1) === 1 ? 'cut after' : 'pass';
    await tool.commit(result());
    expect(commits).toBe(1);
    expect(await orders()).toEqual([1]);
    expect(await notes()).toEqual(['result']);
  });

  it('JRN-5b: a connection that died before COMMIT is a conflict, and nothing is committed', async () => {
    const manager = await begin();
    await manager.getRepository(orderEntity).insert({ id: 1 });
    proxy.cut();
    await new Promise((next) => setTimeout(next, 20));
    const refusal: unknown = await tool.commit(result()).catch((error: unknown) => error);
    expect(['STORE_CONFLICT', 'STORE_UNAVAILABLE']).toContain((refusal as { code: string }).code);
    expect(await orders()).toEqual([]);
    expect(await notes()).toEqual([]);
  });

  describe('on a network that swallows everything (B027)', () => {
    const inTime = async (work: Promise<unknown>): Promise<void> => {
      const begun = performance.now();
      await expect(work).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
      expect(performance.now() - begun).toBeLessThan(4_000);
    };
    /** Nothing of ours holds a place in the pool any more. */
    const isPoolFree = async (): Promise<void> => {
      proxy.endPartition();
      const runners = Array.from({ length: 10 }, () => dataSource.createQueryRunner());
      await Promise.all(runners.map((runner) => runner.connect()));
      await Promise.all(runners.map((runner) => runner.release()));
    };

    it('JRN-5b: is not begun, and says so in time', async () => {
      proxy.partition('loses');
      await inTime(tool.begin());
      await isPoolFree();
    });

    it('JRN-5b: is not committed, says so in time, and is rolled back when the server hears of it', async () => {
      const manager = await begin();
      await manager.getRepository(orderEntity).insert({ id: 1 });
      proxy.partition('loses');
      await inTime(tool.commit(result()));
      await isPoolFree();
      proxy.cut();
      expect(await orders()).toEqual([]);
      expect(await notes()).toEqual([]);
    });

    it("I10: cannot be rolled back in good order, which says that it was no fault of the tool's", async () => {
      await begin();
      proxy.partition('loses');
      await inTime(tool.rollback());
      await isPoolFree();
    });
  });

  it('B131: is not begun while the pool is exhausted, says so in time, and a connection that comes late goes back', async () => {
    const { store: small, dataSource: its } = await subject.open({ statementTimeoutMs: 150 }, { poolSize: 2 });
    const hogs = [its.createQueryRunner(), its.createQueryRunner()];
    for (const hog of hogs) await hog.connect();
    const next = small.openToolTransaction();
    await expect(next.begin()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    for (const hog of hogs) await hog.release();
    await Promise.all(hogs.map(() => its.query('SELECT 1')));
  });

  it('I10: a method whose connection was cut threw by no fault of its own, as its rollback says', async () => {
    const manager = await begin();
    proxy.cut();
    await expect(manager.getRepository(orderEntity).insert({ id: 1 })).rejects.toThrow();
    await expect(tool.rollback()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    expect(await orders()).toEqual([]);
  });

  it('JRN-5b: its connection goes back without a transaction, though a nested one was open when it was rolled back', async () => {
    const manager = await begin();
    await manager.getRepository(orderEntity).insert({ id: 1 });
    let end: () => void = () => undefined;
    let isNested: () => void = () => undefined;
    const nested = new Promise<void>((resolve) => (isNested = resolve));
    const left = manager
      .transaction(async () => {
        isNested();
        await new Promise<void>((resolve) => (end = resolve));
      })
      .catch(() => undefined);
    await nested;
    await tool.rollback();
    end();
    await left;
    // Whoever is given it next commits nothing but his own.
    await Promise.all(Array.from({ length: 10 }, () => dataSource.transaction((one) => one.query('SELECT 1'))));
    expect(await orders()).toEqual([]);
  });

  it('decision one-connection-of-sqlite: a run that is started in `context.manager` joins, and is told after the commit', async () => {
    const manager = await begin();
    const visible: string[] = [];
    await store.create({
      runId: 'run-2',
      sessionId: null,
      requestScope: 'run:run-2',
      requestId: 'run-2',
      transaction: manager,
      onVisible: () => visible.push('run-2'),
      decide: ({ now }) => ({
        do: 'insert',
        run: aRun(now, { id: 'run-2' }),
        entries: [],
        totals: totalsOf(0),
        session: null,
      }),
    });
    expect(await store.load('run-2')).toBeNull();
    expect(visible).toEqual([]);
    await tool.commit(result());
    await until(() => visible.length > 0);
    expect(await store.load('run-2')).not.toBeNull();
  });

  it("decision a-tool-in-a-transaction: knows the database's conflicts from other errors of the method", async () => {
    const manager = await begin();
    const duplicate: unknown = await manager
      .query('INSERT INTO orders (id) VALUES (1), (1)')
      .catch((error: unknown) => error);
    expect(tool.isConflict(duplicate)).toBe(false);
    expect(tool.isConflict(new Error('deadlock'))).toBe(false);
    const deadlock = type === 'postgres' ? { code: '40P01' } : { code: 'ER_LOCK_DEADLOCK', errno: 1213 };
    expect(tool.isConflict(Object.assign(new Error('deadlock'), deadlock))).toBe(true);
    await tool.rollback();
    expect(await dataSource.query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });
});

describe('the transaction of a transactional tool on postgres', () => {
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  it('JRN-5b: rows that the database refuses at the commit are an error of the tool, and nothing is committed', async () => {
    const subject = await ServerSubject.create('postgres');
    const { store } = await subject.open();
    await subject.admin.query('CREATE TABLE orders (id int PRIMARY KEY)');
    await subject.admin.query(
      'CREATE TABLE lines (id int PRIMARY KEY, order_id int REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED)',
    );
    await running(store);
    const tool = store.openToolTransaction();
    const manager = (await tool.begin()) as EntityManager;
    await manager.query('INSERT INTO lines (id, order_id) VALUES (1, 77)');
    const refusal: unknown = await tool
      .commit({ runId: 'run-1', attempt: 1, firstSequence: 3, entries: [note('a')], totals: totalsOf(1) })
      .catch((error: unknown) => error);
    expect(refusal).toMatchObject({ name: 'ToolCommitRefusedError', databaseCode: '23503' });
    expect(notesOf(await journal(store, 'run-1'))).toEqual([]);
    await subject.dispose();
  });
});
