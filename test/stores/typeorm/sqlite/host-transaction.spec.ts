import { DataSource, type EntityManager } from 'typeorm';
import type { CreateRequest, CreateResult } from '../../../../lib/contracts/ports/run-store.port.js';
import type { TypeOrmRunStore } from '../../../../lib/stores/typeorm/typeorm-run.store.js';
import { aRun, beat, claim, loaded, OFFER, submit, totalsOf } from '../../../../packages/contract/lib/scenario.js';
import { SqliteLockHolder } from '../sqlite-lock-holder.js';
import { SqliteSubject } from '../sqlite-subject.js';

describe('a run that is created in a transaction of the host, on SQLite', () => {
  let subject: SqliteSubject;
  let store: TypeOrmRunStore;
  let dataSource: DataSource;
  let visible: string[];

  beforeEach(async () => {
    subject = await SqliteSubject.create();
    ({ store, dataSource } = await subject.open({ statementTimeoutMs: 1_000 }));
    await dataSource.query('CREATE TABLE orders (id integer PRIMARY KEY, note text)');
    visible = [];
  });

  afterEach(() => subject.dispose());

  function start(
    transaction: EntityManager | unknown,
    id = 'run-1',
    extras: Partial<CreateRequest> = {},
  ): Promise<CreateResult> {
    return store.create({
      runId: id,
      sessionId: null,
      requestScope: 'agent:support',
      requestId: `request-of-${id}`,
      transaction,
      onVisible: () => visible.push(id),
      decide: ({ now, sameRequest, sameId }) =>
        (sameRequest ?? sameId)
          ? { do: 'return', run: (sameRequest ?? sameId) as never }
          : {
              do: 'insert',
              run: aRun(now, {
                id,
                requestScope: 'agent:support',
                requestId: `request-of-${id}`,
                metadata: { tenant: 'a' },
              }),
              entries: [{ type: 'run.submitted', at: now, messages: [] }],
              totals: totalsOf(0),
              session: null,
            },
      ...extras,
    });
  }

  const insertOrder = (manager: EntityManager, id: number): Promise<unknown> =>
    manager.query('INSERT INTO orders (id) VALUES (?)', [id]);
  const orders = async (): Promise<number[]> =>
    (await dataSource.query<{ id: number }[]>('SELECT id FROM orders ORDER BY id')).map(({ id }) => id);
  const isThere = async (id = 'run-1'): Promise<boolean> => (await store.load(id)) !== null;

  it('SUB-1: is there with the rows of the host, and told once, after the commit', async () => {
    await dataSource.transaction(async (manager) => {
      await insertOrder(manager, 1);
      expect((await start(manager)).created).toBe(true);
      await insertOrder(manager, 2);
      expect(visible).toEqual([]);
    });
    expect(visible).toEqual(['run-1']);
    expect(await orders()).toEqual([1, 2]);
    expect(await loaded(store, 'run-1')).toMatchObject({ status: 'pending', sequence: 1 });
    await dataSource.transaction((manager) => insertOrder(manager, 3));
    expect(visible).toEqual(['run-1']);
  });

  it('B164: is gone with them after a rollback, told to nobody, and could not be claimed before', async () => {
    await beat(store, 'worker-1');
    let claimed: Promise<number | null> | undefined;
    const work = dataSource.transaction(async (manager) => {
      await start(manager);
      const { claimable } = await store.due({
        offers: [OFFER],
        contractVersion: 1,
        limit: 10,
        takeovers: false,
        held: [],
      });
      expect(claimable).toEqual([{ id: 'run-1', status: 'pending' }]);
      claimed = claim(store, 'run-1', 'worker-1');
      await new Promise((next) => setTimeout(next, 20));
      throw new Error('rolled back');
    });
    await expect(work).rejects.toThrow('rolled back');
    expect(await claimed).toBeNull();
    expect(await isThere()).toBe(false);
    expect(visible).toEqual([]);
    expect((await store.list({ metadata: { tenant: 'a' }, limit: 10 })).items).toEqual([]);
  });

  it('decision a-start-in-a-transaction: is told after the outermost commit, not when a savepoint is released', async () => {
    await dataSource.transaction(async (manager) => {
      await manager.transaction(async (nested) => {
        await start(nested);
        expect(visible).toEqual([]);
      });
      await insertOrder(manager, 1);
      expect(visible).toEqual([]);
    });
    expect(visible).toEqual(['run-1']);
  });

  it('decision a-start-in-a-transaction: is told to nobody when only its savepoint was rolled back', async () => {
    await dataSource.transaction(async (manager) => {
      await start(manager, 'run-2');
      await manager
        .transaction(async (nested) => {
          await start(nested);
          throw new Error('nested only');
        })
        .catch(() => undefined);
    });
    expect(visible).toEqual(['run-2']);
    expect([await isThere('run-1'), await isThere('run-2')]).toEqual([false, true]);
  });

  it('decision a-start-in-a-transaction: works with a query runner that the host drives itself', async () => {
    const queryRunner = dataSource.createQueryRunner();
    await queryRunner.startTransaction();
    await start(queryRunner.manager);
    expect(visible).toEqual([]);
    await queryRunner.commitTransaction();
    expect(visible).toEqual(['run-1']);
    await queryRunner.release();
  });

  it("decision a-start-in-a-transaction: a waker that throws does not fail the host's commit", async () => {
    await dataSource.transaction((manager) =>
      start(manager, 'run-1', {
        onVisible: () => {
          throw new Error('waker');
        },
      }),
    );
    expect(await isThere()).toBe(true);
  });

  it('B164: a duplicate inside the transaction is found there, and the transaction stays usable', async () => {
    await start(undefined, 'run-0');
    await dataSource.transaction(async (manager) => {
      expect((await start(manager, 'run-0')).created).toBe(false);
      expect((await start(manager)).created).toBe(true);
      expect((await start(manager)).created).toBe(false);
      await insertOrder(manager, 1);
    });
    expect(await orders()).toEqual([1]);
    expect(visible).toEqual(['run-0', 'run-1']);
  });

  it('B164: a refusal leaves the transaction usable, and nothing of the run in it', async () => {
    await dataSource.transaction(async (manager) => {
      await expect(
        start(manager, 'run-1', {
          decide: () => {
            throw new RangeError('no');
          },
        }),
      ).rejects.toThrow(RangeError);
      // Fails after the run's row is written: BigInt has no form in JSON.
      await expect(
        start(manager, 'run-2', {
          decide: ({ now }) => ({
            do: 'insert',
            run: aRun(now, { id: 'run-2' }),
            entries: [{ type: 'run.submitted', at: 1n as unknown as number, messages: [] }],
            totals: totalsOf(0),
            session: null,
          }),
        }),
      ).rejects.toThrow(TypeError);
      await insertOrder(manager, 1);
    });
    expect(await orders()).toEqual([1]);
    expect([await isThere('run-1'), await isThere('run-2')]).toEqual([false, false]);
    expect(visible).toEqual([]);
  });

  it("SUB-1: a session's order is decided in the transaction", async () => {
    await submit(store, { id: 'run-0', sessionId: 'session-1' });
    await dataSource.transaction(async (manager) => {
      const result = await store.create({
        runId: 'run-1',
        sessionId: 'session-1',
        requestScope: 'session:session-1',
        requestId: 'run-1',
        transaction: manager,
        decide: ({ now, session }) => ({
          do: 'insert',
          run: aRun(now, { sessionId: 'session-1', sessionOrder: (session?.lastOrder ?? 0) + 1, status: 'queued' }),
          entries: [],
          totals: totalsOf(0),
          session: session && { ...session, lastOrder: session.lastOrder + 1 },
        }),
      });
      expect(result.run.sessionOrder).toBe(2);
    });
    expect((await store.session('session-1'))?.lastOrder).toBe(2);
  });

  it.each([
    ['nothing of the kind', {}, /must be the EntityManager/],
    ['null', null, /must be the EntityManager/],
    ['text', 'begin', /must be the EntityManager/],
  ])('decision a-start-in-a-transaction: refuses %s as a transaction', async (_what, transaction, message) => {
    await expect(start(transaction)).rejects.toThrow(message);
    await expect(start(transaction)).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
  });

  it('decision a-start-in-a-transaction: refuses a manager without a transaction, of a finished one, and of another data source', async () => {
    await expect(start(dataSource.manager)).rejects.toThrow(/must be the EntityManager/);
    let finished: EntityManager | undefined;
    await dataSource.transaction(async (manager) => {
      finished = manager;
      await insertOrder(manager, 1);
    });
    await expect(start(finished)).rejects.toThrow(/not open/);
    const other = (await subject.open()).dataSource;
    await other.transaction((manager) => expect(start(manager)).rejects.toThrow(/another data source/));
    expect(await isThere()).toBe(false);
  });

  it("decision a-start-in-a-transaction: is not repeated when the host's transaction cannot write: the host must repeat it", async () => {
    await dataSource.query('PRAGMA busy_timeout = 20');
    const holder = await SqliteLockHolder.hold(subject.file);
    await dataSource.transaction(async (manager) => {
      await manager.query('SELECT 1 FROM orders');
      await expect(start(manager)).rejects.toMatchObject({ code: 'STORE_CONFLICT', retryable: true });
    });
    await holder.letGo();
    expect(await isThere()).toBe(false);
  });
});
