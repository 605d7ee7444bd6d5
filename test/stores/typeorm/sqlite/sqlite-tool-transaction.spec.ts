import { DataSource, EntitySchema, type EntityManager, type EntitySubscriberInterface } from 'typeorm';
import type { AppendRequest, ToolTransaction } from '../../../../lib/contracts/ports/run-store.port.js';
import type { TypeOrmRunStore } from '../../../../lib/stores/typeorm/typeorm-run.store.js';
import {
  aRun,
  change,
  journal,
  note,
  notesOf,
  running,
  submit,
  totalsOf,
} from '../../../../packages/contract/lib/scenario.js';
import { SqliteLockHolder } from '../sqlite-lock-holder.js';
import { SqliteSubject } from '../sqlite-subject.js';

const orderEntity = new EntitySchema<{ id: number; note: string | null }>({
  name: 'Order',
  tableName: 'orders',
  columns: { id: { type: 'integer', primary: true }, note: { type: 'text', nullable: true } },
});

const pause = (ms = 10): Promise<void> => new Promise((next) => setTimeout(next, ms));

describe('the transaction of a transactional tool on SQLite', () => {
  let subject: SqliteSubject;
  let store: TypeOrmRunStore;
  let dataSource: DataSource;
  let tool: ToolTransaction;

  beforeEach(async () => {
    subject = await SqliteSubject.create();
    ({ store, dataSource } = await subject.open(
      { statementTimeoutMs: 1_000 },
      { entities: [orderEntity], synchronize: true },
    ));
    await running(store);
    tool = store.openToolTransaction();
  });

  afterEach(async () => {
    await tool.rollback();
    await subject.dispose();
  });

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
    (await dataSource.getRepository(orderEntity).find()).map(({ id }) => id);
  const notes = async (): Promise<unknown[]> => notesOf(await journal(store, 'run-1'));
  const isIdle = (): boolean => {
    const { databaseConnection } = dataSource.driver as unknown as { databaseConnection: { inTransaction: boolean } };
    return !databaseConnection.inTransaction && !dataSource.createQueryRunner().isTransactionActive;
  };

  it("JRN-5b: commits the tool's rows and its journal entry together", async () => {
    const manager = await begin();
    await manager.getRepository(orderEntity).save({ id: 1, note: 'paid' });
    await manager.query('INSERT INTO orders (id) VALUES (2)');
    await tool.commit(result());
    expect(isIdle()).toBe(true);
    expect(await orders()).toEqual([1, 2]);
    expect(await notes()).toEqual(['result']);
    const { store: other } = await subject.open();
    expect(notesOf(await journal(other, 'run-1'))).toEqual(['result']);
    await tool.commit(result());
    await tool.rollback();
    expect(await orders()).toEqual([1, 2]);
  });

  it('JRN-5b: rolls both back', async () => {
    const manager = await begin();
    await manager.getRepository(orderEntity).insert({ id: 1 });
    await tool.rollback();
    await tool.rollback();
    expect(isIdle()).toBe(true);
    expect(await orders()).toEqual([]);
    expect(await notes()).toEqual([]);
    await expect(tool.commit(result())).rejects.toMatchObject({ code: 'STORE_CONFLICT' });
  });

  it('JRN-5b: can be rolled back before it began', async () => {
    await tool.rollback();
    expect(isIdle()).toBe(true);
  });

  it('JRN-5b: gives the connection free when it is opened after its tool has lost patience', async () => {
    const host = dataSource.createQueryRunner();
    await host.startTransaction();
    const begun = tool.begin();
    const rolledBack = tool.rollback();
    await pause(50);
    await host.commitTransaction();
    await begun;
    await rolledBack;
    expect(isIdle()).toBe(true);
    await submit(store, { id: 'run-2' });
  });

  it.each([
    ['a stale attempt', { attempt: 2 }, 'FENCED'],
    ['a wrong sequence', { firstSequence: 9 }, 'SEQUENCE_CONFLICT'],
  ])('I3: %s is refused at the commit, and the rows of the tool are gone', async (_what, overrides, code) => {
    const manager = await begin();
    await manager.getRepository(orderEntity).insert({ id: 1 });
    await expect(tool.commit(result(overrides))).rejects.toMatchObject({ code });
    expect(isIdle()).toBe(true);
    expect(await orders()).toEqual([]);
    expect(await notes()).toEqual([]);
  });

  it('I3: a run that was cancelled while it waited for the connection is fenced', async () => {
    const cancel = change(store, 'run-1', { status: 'cancelled' }, [{ type: 'run.cancelled', at: 1 }]);
    const manager = await begin();
    await cancel;
    await manager.getRepository(orderEntity).insert({ id: 1 });
    await expect(tool.commit(result({ firstSequence: 4 }))).rejects.toMatchObject({ code: 'FENCED' });
    expect(await orders()).toEqual([]);
  });

  describe('context.manager', () => {
    it('JRN-5b: fails clearly after the tool has ended, with everything obtained through it', async () => {
      const manager = await begin();
      const repository = manager.getRepository(orderEntity);
      const builder = manager.createQueryBuilder(orderEntity, 'o');
      await repository.insert({ id: 1 });
      await tool.commit(result());
      const message = /used after the tool had ended/;
      await expect(manager.query('INSERT INTO orders (id) VALUES (9)')).rejects.toThrow(message);
      await expect(repository.insert({ id: 9 })).rejects.toThrow(message);
      await expect(repository.save({ id: 9 })).rejects.toThrow(message);
      await expect(manager.save(orderEntity, { id: 9 })).rejects.toThrow(message);
      await expect(builder.getMany()).rejects.toThrow(message);
      await expect(manager.transaction(() => Promise.resolve())).rejects.toThrow(message);
      expect(await orders()).toEqual([1]);
    });

    it("JRN-5b: does not end the tool's transaction, and its nested ones are savepoints", async () => {
      const manager = await begin();
      const message = /tried to .* the transaction it runs in/;
      for (const sql of ['COMMIT', ' rollback', 'END', 'begin', 'ROLLBACK TRANSACTION', 'commit;']) {
        await expect(manager.query(sql)).rejects.toThrow(message);
      }
      await expect(manager.queryRunner?.commitTransaction()).rejects.toThrow(message);
      await expect(manager.queryRunner?.rollbackTransaction()).rejects.toThrow(message);
      await manager.transaction((nested) => nested.getRepository(orderEntity).insert({ id: 1 }));
      await expect(
        manager.transaction(async (nested) => {
          await nested.getRepository(orderEntity).insert({ id: 2 });
          throw new Error('nested');
        }),
      ).rejects.toThrow('nested');
      await tool.commit(result());
      expect(await orders()).toEqual([1]);
      expect(await notes()).toEqual(['result']);
    });

    it("JRN-5b: is nobody else's: the host's own managers work on afterwards", async () => {
      await begin();
      await tool.commit(result());
      await dataSource.transaction((manager) => manager.getRepository(orderEntity).insert({ id: 5 }));
      await dataSource.manager.getRepository(orderEntity).insert({ id: 6 });
      expect(await orders()).toEqual([5, 6]);
    });
  });

  describe('beside others', () => {
    it('decision a-tool-in-a-transaction: has the connection to itself; commits of other runs land after it', async () => {
      await running(store, { id: 'run-2' });
      const manager = await begin();
      await manager.getRepository(orderEntity).insert({ id: 1 });
      let isTold = false;
      const append = store
        .append({ runId: 'run-2', attempt: 1, firstSequence: 3, entries: [note('other')], totals: totalsOf(0) })
        .then(() => (isTold = true));
      await pause();
      expect(isTold).toBe(false);
      await tool.rollback();
      await append;
      expect(notesOf(await journal(store, 'run-2'))).toEqual(['other']);
      expect(await orders()).toEqual([]);
    });

    it('decision a-tool-in-a-transaction: several tools take turns', async () => {
      await running(store, { id: 'run-2' });
      const second = store.openToolTransaction();
      const manager = await begin();
      const turn = second.begin();
      await manager.getRepository(orderEntity).insert({ id: 1 });
      await pause();
      await tool.commit(result());
      await ((await turn) as EntityManager).getRepository(orderEntity).insert({ id: 2 });
      await second.commit(result({ runId: 'run-2' }));
      expect(await orders()).toEqual([1, 2]);
    });

    it('decision a-tool-in-a-transaction: waits for a transaction of the host', async () => {
      const seen: string[] = [];
      let begun: Promise<unknown> | undefined;
      await dataSource.transaction(async (manager) => {
        begun = tool.begin().then(() => seen.push('tool'));
        await manager.getRepository(orderEntity).insert({ id: 1 });
        await pause();
        seen.push('host');
      });
      await begun;
      expect(seen).toEqual(['host', 'tool']);
      await tool.rollback();
      expect(await orders()).toEqual([1]);
    });

    it('decision a-tool-in-a-transaction: a host that starts a transaction at any moment never meets a second BEGIN', async () => {
      const failures: unknown[] = [];
      let isOver = false;
      const host = (async () => {
        for (let id = 100; !isOver; id += 1) {
          await dataSource
            .transaction((manager) => manager.getRepository(orderEntity).insert({ id }))
            .catch((error: unknown) => failures.push(error));
          await pause(0);
        }
      })();
      for (let round = 0; round < 30; round += 1) {
        const one = store.openToolTransaction();
        const manager = (await one.begin()) as EntityManager;
        await manager.getRepository(orderEntity).insert({ id: round });
        await pause(1);
        await one.commit(result({ firstSequence: 3 + round }));
      }
      isOver = true;
      await host;
      expect(failures).toEqual([]);
      expect((await orders()).filter((id) => id < 100)).toHaveLength(30);
      expect(await notes()).toHaveLength(30);
      expect(isIdle()).toBe(true);
    });

    it('decision one-connection-of-sqlite: is only committed after a host transaction that began inside it has ended', async () => {
      await begin();
      let commit: Promise<void> | undefined;
      await dataSource.transaction(async (manager) => {
        await manager.getRepository(orderEntity).insert({ id: 1 });
        commit = tool.commit(result());
        await pause(30);
        await manager.getRepository(orderEntity).insert({ id: 2 });
      });
      await commit;
      expect(isIdle()).toBe(true);
      expect(await orders()).toEqual([1, 2]);
      expect(await notes()).toEqual(['result']);
    });

    it('decision a-tool-in-a-transaction: a transaction that was lost under the tool is a conflict, not a result', async () => {
      const manager = await begin();
      await manager.getRepository(orderEntity).insert({ id: 1 });
      const { databaseConnection } = dataSource.driver as unknown as {
        databaseConnection: { exec(sql: string): void };
      };
      databaseConnection.exec('ROLLBACK');
      await expect(tool.commit(result())).rejects.toMatchObject({ code: 'STORE_CONFLICT', retryable: true });
      expect(isIdle()).toBe(true);
      expect(await notes()).toEqual([]);
    });

    it('decision one-connection-of-sqlite: begins when another process lets go of the write lock, without standing still', async () => {
      const holder = await SqliteLockHolder.hold(subject.file);
      const begun = begin();
      await pause(60);
      await holder.letGo();
      await (await begun).getRepository(orderEntity).insert({ id: 1 });
      await tool.commit(result());
      expect(await orders()).toEqual([1]);
    });

    it('STO-3: is unavailable when that takes too long', async () => {
      const { store: quick } = await subject.open({ statementTimeoutMs: 40 });
      const holder = await SqliteLockHolder.hold(subject.file);
      await expect(quick.openToolTransaction().begin()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
      await holder.letGo();
    });
  });

  describe('calls of the store from inside the method', () => {
    it('decision one-connection-of-sqlite: that write are refused at once, with what to do instead', async () => {
      await begin();
      const enter = tool.enter?.bind(tool) as NonNullable<ToolTransaction['enter']>;
      await enter(async () => {
        await pause(1);
        await expect(submit(store, { id: 'run-2' })).rejects.toThrow(
          /SQLite has one connection.*do it outside the tool/,
        );
        await expect(change(store, 'run-1', { recoveries: 1 })).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
        await expect(store.append(result())).rejects.toMatchObject({ code: 'INVALID_REQUEST' });
      });
      await tool.commit(result());
      await enter(() => submit(store, { id: 'run-3' }));
      expect((await store.list({ limit: 10 })).items.map(({ id }) => id).sort()).toEqual(['run-1', 'run-3']);
    });

    it('decision one-connection-of-sqlite: that read are answered', async () => {
      await begin();
      await tool.enter?.(async () => {
        expect((await store.load('run-1'))?.run.status).toBe('running');
        expect((await journal(store, 'run-1')).length).toBe(2);
      });
    });

    it('decision one-connection-of-sqlite: that start a run in `context.manager` join, and the run is told after the commit', async () => {
      const manager = await begin();
      const visible: string[] = [];
      const start = (id: string): Promise<unknown> =>
        store.create({
          runId: id,
          sessionId: null,
          requestScope: `run:${id}`,
          requestId: id,
          transaction: manager,
          onVisible: () => visible.push(id),
          decide: ({ now }) => ({
            do: 'insert',
            run: aRun(now, { id }),
            entries: [],
            totals: totalsOf(0),
            session: null,
          }),
        });
      await tool.enter?.(() => start('run-2'));
      expect(visible).toEqual([]);
      await tool.commit(result());
      expect(visible).toEqual(['run-2']);
      expect(await store.load('run-2')).not.toBeNull();
      await expect(start('run-3')).rejects.toThrow(/used after the tool had ended/);
    });
  });

  it('JRN-5b: rows that the database refuses at the commit are an error of the tool, and nothing is committed', async () => {
    await dataSource.query(
      'CREATE TABLE lines (id integer PRIMARY KEY, order_id integer REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED)',
    );
    const manager = await begin();
    await manager.query('INSERT INTO lines (id, order_id) VALUES (1, 77)');
    const refusal: unknown = await tool.commit(result()).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ name: 'ToolCommitRefusedError', databaseCode: 'SQLITE_CONSTRAINT_FOREIGNKEY' });
    expect(tool.isConflict(refusal)).toBe(false);
    expect(isIdle()).toBe(true);
    expect(await notes()).toEqual([]);
    expect(await dataSource.query('SELECT * FROM lines')).toEqual([]);
  });

  it("decision a-tool-in-a-transaction: knows the database's conflicts from other errors of the method", async () => {
    const manager = await begin();
    const duplicate = async (): Promise<void> => {
      await manager.query('INSERT INTO orders (id) VALUES (1)');
      await manager.query('INSERT INTO orders (id) VALUES (1)');
    };
    const error: unknown = await duplicate().catch((thrown: unknown) => thrown);
    expect(tool.isConflict(error)).toBe(false);
    expect(tool.isConflict(new Error('SQLITE_BUSY'))).toBe(false);
    expect(tool.isConflict(Object.assign(new Error('busy'), { code: 'SQLITE_BUSY_SNAPSHOT' }))).toBe(true);
  });

  it("JRN-5b: is told to the host's subscribers like any transaction", async () => {
    const seen: string[] = [];
    const subscriber: EntitySubscriberInterface = {
      afterTransactionStart: () => void seen.push('start'),
      beforeTransactionCommit: async ({ queryRunner }) => {
        seen.push('before');
        await queryRunner.query('INSERT INTO orders (id) VALUES (77)');
      },
      afterTransactionCommit: () => {
        seen.push('commit');
        throw new Error('too late to matter');
      },
      afterTransactionRollback: () => void seen.push('rollback'),
    };
    dataSource.subscribers.push(subscriber);
    await begin();
    await tool.commit(result());
    expect(seen).toEqual(['start', 'before', 'commit']);
    expect(await orders()).toEqual([77]);
    const second = store.openToolTransaction();
    await second.begin();
    await second.rollback();
    expect(seen.slice(3)).toEqual(['start', 'rollback']);
  });

  it('JRN-5b: a subscriber that refuses its start or its commit rolls it back', async () => {
    const refuse = (): never => {
      throw new Error('refused by the host');
    };
    const subscribers = dataSource.subscribers;
    subscribers.push({ beforeTransactionCommit: refuse });
    const manager = await begin();
    await manager.getRepository(orderEntity).insert({ id: 1 });
    await expect(tool.commit(result())).rejects.toThrow('refused by the host');
    subscribers.splice(0, subscribers.length, { afterTransactionStart: refuse });
    await expect(store.openToolTransaction().begin()).rejects.toThrow('refused by the host');
    subscribers.splice(0);
    expect(isIdle()).toBe(true);
    expect(await orders()).toEqual([]);
    expect(await notes()).toEqual([]);
  });
});
