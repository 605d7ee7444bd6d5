import type { DataSource, EntityManager } from 'typeorm';
import type { CreateRequest, CreateResult } from '../../../../lib/contracts/ports/run-store.port.js';
import { scriptedModel } from '../../../../lib/model/scripted/scripted-model.js';
import type { TypeOrmRunStore } from '../../../../lib/stores/typeorm/typeorm-run.store.js';
import { aRun, loaded, OFFER, totalsOf, upTo } from '../../../../packages/contract/lib/scenario.js';
import { agent, engineOver, stopEngines } from '../../../support/engine-harness.js';
import { until } from '../../../support/until.js';
import { describeServers, ServerSubject } from '../server-subject.js';

describeServers('a run that is created in a transaction of the host, on %s', (type) => {
  let subject: ServerSubject;
  let store: TypeOrmRunStore;
  let dataSource: DataSource;
  let visible: string[];

  beforeEach(async () => {
    subject = await ServerSubject.create(type);
    ({ store, dataSource } = await subject.open({ statementTimeoutMs: 3_000 }));
    await subject.admin.query('CREATE TABLE orders (id int PRIMARY KEY)');
    visible = [];
  }, 60_000);

  afterEach(async () => {
    await stopEngines();
    await subject.dispose();
  }, 60_000);
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  function start(transaction: unknown, id = 'run-1', extras: Partial<CreateRequest> = {}): Promise<CreateResult> {
    return store.create({
      runId: id,
      sessionId: null,
      requestScope: 'agent:support',
      requestId: extras.requestId ?? `request-of-${id}`,
      ...(transaction === undefined ? {} : { transaction }),
      onVisible: () => visible.push(id),
      decide: ({ now, sameRequest, sameId }) => {
        const existing = sameRequest ?? sameId;
        if (existing) return { do: 'return', run: existing };
        const request = { requestScope: 'agent:support', requestId: extras.requestId ?? `request-of-${id}` };
        return {
          do: 'insert',
          run: aRun(now, { id, ...request }),
          entries: [{ type: 'run.submitted', at: now, messages: [] }],
          totals: totalsOf(0),
          session: null,
        };
      },
      ...extras,
    });
  }

  const insertOrder = (manager: EntityManager, id: number): Promise<unknown> =>
    manager.query(`INSERT INTO orders (id) VALUES (${id})`);
  const orders = async (): Promise<number[]> =>
    (await subject.admin.query<{ id: number }[]>('SELECT id FROM orders ORDER BY id')).map(({ id }) => id);
  const isThere = async (id = 'run-1'): Promise<boolean> => (await store.load(id)) !== null;

  it('SUB-1: is there with the rows of the host, seen by nobody before, and told once after the commit', async () => {
    await dataSource.transaction(async (manager) => {
      await insertOrder(manager, 1);
      expect((await start(manager)).created).toBe(true);
      expect(await isThere()).toBe(false);
      const { claimable } = await store.due({
        offers: [OFFER],
        contractVersion: 1,
        limit: 9,
        takeovers: true,
        held: [],
      });
      expect(claimable).toEqual([]);
      await insertOrder(manager, 2);
      expect(visible).toEqual([]);
    });
    await until(() => visible.length > 0);
    expect(visible).toEqual(['run-1']);
    expect(await orders()).toEqual([1, 2]);
    expect(await loaded(store, 'run-1')).toMatchObject({ status: 'pending', sequence: 1 });
  });

  it('B164: is gone with them after a rollback, and told to nobody', async () => {
    const work = dataSource.transaction(async (manager) => {
      await start(manager);
      throw new Error('rolled back');
    });
    await expect(work).rejects.toThrow('rolled back');
    expect(await isThere()).toBe(false);
    await dataSource.transaction((manager) => start(manager, 'run-2'));
    await until(() => visible.length > 0);
    expect(visible).toEqual(['run-2']);
  });

  it('decision a-start-in-a-transaction: is told after the outermost commit; not for a savepoint that was rolled back', async () => {
    await dataSource.transaction(async (manager) => {
      await manager.transaction((nested) => start(nested));
      await manager
        .transaction(async (nested) => {
          await start(nested, 'run-2');
          throw new Error('nested only');
        })
        .catch(() => undefined);
      expect(visible).toEqual([]);
      await start(manager, 'run-3');
    });
    await until(() => visible.length > 1);
    expect(visible).toEqual(['run-1', 'run-3']);
    expect(await isThere('run-2')).toBe(false);
  });

  it('B164: a duplicate is found, a refusal or a failure is taken back, and the transaction stays usable', async () => {
    await start(undefined, 'run-0');
    await dataSource.transaction(async (manager) => {
      expect((await start(manager, 'run-0')).created).toBe(false);
      expect((await start(manager)).created).toBe(true);
      expect((await start(manager)).created).toBe(false);
      await expect(
        start(manager, 'run-2', {
          decide: () => {
            throw new RangeError('no');
          },
        }),
      ).rejects.toThrow(RangeError);
      await expect(
        start(manager, 'run-3', {
          decide: ({ now }) => ({
            do: 'insert',
            run: aRun(now, { id: 'run-3' }),
            entries: [{ type: 'run.submitted', at: 1n as unknown as number, messages: [] }],
            totals: totalsOf(0),
            session: null,
          }),
        }),
      ).rejects.toThrow(TypeError);
      // A decider that was shown the run and inserts it all the same.
      await expect(
        start(manager, 'run-0', {
          decide: ({ now }) => ({
            do: 'insert',
            run: aRun(now, { id: 'run-0' }),
            entries: [],
            totals: totalsOf(0),
            session: null,
          }),
        }),
      ).rejects.toMatchObject({ code: 'STORE_CONFLICT' });
      await insertOrder(manager, 1);
    });
    expect(await orders()).toEqual([1]);
    expect([await isThere('run-1'), await isThere('run-2'), await isThere('run-3')]).toEqual([true, false, false]);
  });

  it('B164: a request that somebody commits at the same moment is found by our own transaction', async () => {
    await Promise.all(Array.from({ length: 6 }, (_, n) => start(undefined, `run-${n}`, { requestId: 'the-same' })));
    expect((await store.list({ limit: 10 })).items).toHaveLength(1);
    expect(visible).toHaveLength(1);
  });

  it.each(['READ COMMITTED', 'REPEATABLE READ'] as const)(
    "B164: one that is committed while the host's transaction at %s waits for it does not break the transaction",
    async (level) => {
      let other: Promise<unknown> | undefined;
      await dataSource.transaction(level, async (first) => {
        await start(first, 'run-1', { requestId: 'the-same' });
        other = dataSource.transaction(level, async (second) => {
          // Its snapshot is older than the other's commit.
          await second.query('SELECT id FROM orders');
          const { run, created } = await start(second, 'run-2', { requestId: 'the-same' });
          expect([run.id, created]).toEqual(['run-1', false]);
          await insertOrder(second, 1);
        });
        await new Promise((next) => setTimeout(next, 100));
      });
      await other;
      expect(await orders()).toEqual([1]);
      expect((await store.list({ limit: 10 })).items.map(({ id }) => id)).toEqual(['run-1']);
    },
  );

  it('SUB-4: does not stand in the way of one in another new session, at REPEATABLE READ', async () => {
    const inSession = (transaction: unknown, id: string) => {
      const sessionId = `session-of-${id}`;
      const session = {
        id: sessionId,
        mode: 'serial',
        owner: null,
        headRunId: id,
        latestCompletedRunId: null,
      } as const;
      return start(transaction, id, {
        sessionId,
        decide: ({ now }) => ({
          do: 'insert',
          run: aRun(now, { id, sessionId, sessionMode: 'serial', sessionOrder: 1 }),
          entries: [{ type: 'run.submitted', at: now, messages: [] }],
          totals: totalsOf(0),
          session: { ...session, lastOrder: 1, startedOrder: 1 },
        }),
      });
    };
    await dataSource.transaction('REPEATABLE READ', async (first) => {
      await inSession(first, 'run-1');
      // Done while the first one is still open.
      await dataSource.transaction('REPEATABLE READ', (second) => inSession(second, 'run-2'));
      await inSession(first, 'run-3');
    });
    expect((await store.list({ limit: 10 })).items).toHaveLength(3);
  });

  it('STO-3: is refused where it is the victim of a deadlock, and says what is left of the transaction', async () => {
    await dataSource.query('INSERT INTO orders (id) VALUES (1), (2)');
    const lock = (manager: EntityManager, id: number) => manager.query(`UPDATE orders SET id = id WHERE id = ${id}`);
    let victim: Promise<unknown> | undefined;
    await dataSource.transaction(async (first) => {
      await start(first, 'run-1', { requestId: 'the-same' });
      const work = dataSource.transaction(async (second) => {
        await lock(second, 2);
        await start(second, 'run-2', { requestId: 'the-same' });
      });
      victim = expect(work).rejects.toMatchObject({
        code: 'STORE_CONFLICT',
        message: expect.stringMatching(
          type === 'mariadb' ? /has ended the transaction.*repeat it from its beginning/ : /repeat the transaction/,
        ),
      });
      await new Promise((next) => setTimeout(next, 100));
      await lock(first, 2);
    });
    await victim;
    expect((await store.list({ limit: 10 })).items.map(({ id }) => id)).toEqual(['run-1']);
  });

  it('SUB-1: needs no connection but that of the host, whose pool may be in use to the last one', async () => {
    const { store: small, dataSource: pool } = await subject.open(
      { statementTimeoutMs: 3_000 },
      {
        poolSize: 2,
      },
    );
    const { runs } = await engineOver(small, agent(scriptedModel()), { worker: false });
    const started = upTo(6).map((n) =>
      pool.transaction(async (manager) => {
        await insertOrder(manager, n);
        return runs.start({ agent: 'support', prompt: 'hello', sessionId: `s-${n}` }, { transaction: manager });
      }),
    );
    expect((await Promise.all(started)).map(({ status }) => status)).toEqual(started.map(() => 'pending'));
    expect(await orders()).toEqual(upTo(6));
  });

  it('SUB-7: is counted on the connection of the host', async () => {
    await dataSource.transaction(async (manager) => {
      await start(manager);
      expect([await store.countPending(10, manager), await store.countPending(10)]).toEqual([1, 0]);
    });
    await expect(store.countPending(10, {})).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  });

  it('decision a-start-in-a-transaction: refuses what is no open transaction of this data source', async () => {
    await expect(start({})).rejects.toThrow(/must be the EntityManager/);
    await expect(start(dataSource.manager)).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
    let finished: EntityManager | undefined;
    await dataSource.transaction(async (manager) => {
      finished = manager;
      await insertOrder(manager, 1);
    });
    await expect(start(finished)).rejects.toThrow(/not open/);
    await subject.admin.transaction((manager) => expect(start(manager)).rejects.toThrow(/another data source/));
    expect(await isThere()).toBe(false);
  });
});
