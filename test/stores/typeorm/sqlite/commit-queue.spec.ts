import { DataSource } from 'typeorm';
import type { TypeOrmRunStore } from '../../../../lib/stores/typeorm/typeorm-run.store.js';
import {
  appendNotes,
  beat,
  change,
  journal,
  loaded,
  note,
  notesOf,
  running,
  submit,
  totalsOf,
  upTo,
} from '../../../../packages/contract/lib/scenario.js';
import { SqliteLockHolder } from '../sqlite-lock-holder.js';
import { SqliteSubject } from '../sqlite-subject.js';

/** Settled or not, without waiting for it. */
async function isSettled(work: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending');
  const after = new Promise((resolve) => setTimeout(() => resolve(pending), 30));
  return (await Promise.race([work.catch(() => undefined), after])) !== pending;
}

function appendOne(store: TypeOrmRunStore, runId: string, firstSequence: number, value: string): Promise<void> {
  return store.append({ runId, attempt: 1, firstSequence, entries: [note(value)], totals: totalsOf(0), isNext: true });
}

describe('commits on the one connection of SQLite', () => {
  let subject: SqliteSubject;
  let store: TypeOrmRunStore;
  let dataSource: DataSource;
  let statements: string[];

  beforeEach(async () => {
    subject = await SqliteSubject.create();
    statements = [];
    const verbose = (sql: unknown): void => void statements.push(String(sql));
    ({ store, dataSource } = await subject.open({ statementTimeoutMs: 2_000 }, { verbose }));
    await dataSource.query('CREATE TABLE orders (id integer PRIMARY KEY, note text)');
  });

  afterEach(() => subject.dispose());

  const orders = async (): Promise<number[]> =>
    (await dataSource.query<{ id: number }[]>('SELECT id FROM orders ORDER BY id')).map(({ id }) => id);

  describe('beside a transaction of the host', () => {
    it('B116: wait for its commit, and are not told before', async () => {
      await running(store);
      let append: Promise<void> | undefined;
      await dataSource.transaction(async (manager) => {
        await manager.query('INSERT INTO orders (id) VALUES (1)');
        append = appendOne(store, 'run-1', 3, 'a');
        expect(await isSettled(append)).toBe(false);
      });
      await append;
      expect(notesOf(await journal(store, 'run-1'))).toEqual(['a']);
    });

    it("B116: are not lost with the host's rollback", async () => {
      await running(store);
      const work: Promise<unknown>[] = [];
      await expect(
        dataSource.transaction(async (manager) => {
          await manager.query('INSERT INTO orders (id) VALUES (1)');
          work.push(appendOne(store, 'run-1', 3, 'a'), submit(store, { id: 'run-2' }), beat(store, 'worker-2'));
          await new Promise((next) => setTimeout(next, 20));
          throw new Error('the host changed its mind');
        }),
      ).rejects.toThrow('the host changed its mind');
      await Promise.all(work);
      expect(await orders()).toEqual([]);
      expect(notesOf(await journal(store, 'run-1'))).toEqual(['a']);
      expect((await loaded(store, 'run-2')).status).toBe('pending');
      expect((await store.liveWorkers()).map(({ id }) => id)).toEqual(['worker-1', 'worker-2']);
    });

    it('B116: are not told when only a savepoint of it was released', async () => {
      await running(store);
      let append: Promise<void> | undefined;
      await expect(
        dataSource.transaction(async (manager) => {
          append = appendOne(store, 'run-1', 3, 'a');
          await manager.transaction((nested) => nested.query('INSERT INTO orders (id) VALUES (1)'));
          expect(await isSettled(append)).toBe(false);
          throw new Error('rolled back');
        }),
      ).rejects.toThrow('rolled back');
      await append;
      expect(await orders()).toEqual([]);
      expect(notesOf(await journal(store, 'run-1'))).toEqual(['a']);
    });

    it('B116: find the gap between two transactions of a host that begins the next one at once', async () => {
      await running(store);
      let isOver = false;
      const append = appendOne(store, 'run-1', 3, 'a').then(() => (isOver = true));
      let rounds = 0;
      while (!isOver && rounds < 200) {
        rounds += 1;
        await dataSource.transaction(async (manager) => {
          await manager.query('INSERT INTO orders (note) VALUES (?)', ['x']);
          await new Promise((next) => setImmediate(next));
        });
      }
      await append;
      expect(rounds).toBeLessThan(200);
    });

    it('B116: notice the end of a transaction that TypeORM does not know of', async () => {
      await running(store);
      const { databaseConnection: raw } = dataSource.driver as unknown as {
        databaseConnection: { exec(sql: string): void };
      };
      raw.exec('BEGIN; INSERT INTO orders (id) VALUES (1)');
      const append = appendOne(store, 'run-1', 3, 'a');
      expect(await isSettled(append)).toBe(false);
      raw.exec('ROLLBACK');
      await append;
      expect(await orders()).toEqual([]);
      expect(notesOf(await journal(store, 'run-1'))).toEqual(['a']);
    });

    it('STO-3: are refused as unavailable when it stays open too long, and nothing of them is written', async () => {
      await running(store);
      const { store: quick, dataSource: its } = await subject.open({ statementTimeoutMs: 50 });
      const refused = its.transaction((manager) =>
        manager.query('SELECT 1').then(() => appendOne(quick, 'run-1', 3, 'a')),
      );
      await expect(refused).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
      await expect(refused).rejects.toThrow(/within 50 ms.*transaction of the host/);
      await new Promise((next) => setTimeout(next, 20));
      expect((await loaded(quick, 'run-1')).sequence).toBe(2);
    });

    it('B116: let twenty runs, heartbeats and rolled back host transactions pass by each other', async () => {
      const ids = upTo(20).map((n) => `run-${String(n).padStart(2, '0')}`);
      await beat(store, 'worker-1');
      let hostErrors = 0;
      let isOver = false;
      const host = (async () => {
        while (!isOver) {
          const work = dataSource.transaction(async (manager) => {
            await manager.query('INSERT INTO orders (note) VALUES (?)', ['lost']);
            await new Promise((next) => setTimeout(next, 10));
            throw new Error('rolled back');
          });
          await work.catch((error: Error) => (hostErrors += error.message === 'rolled back' ? 0 : 1));
        }
      })();
      await Promise.all(
        ids.map(async (id) => {
          await running(store, { id });
          for (const n of upTo(5)) await appendNotes(store, id, 1, [n]);
          await beat(store, 'worker-1');
        }),
      );
      isOver = true;
      await host;
      expect(hostErrors).toBe(0);
      expect(await orders()).toEqual([]);
      for (const id of ids) expect(notesOf(await journal(store, id))).toEqual(upTo(5));
    });
  });

  describe('in one group', () => {
    const commits = (): number => statements.filter((sql) => sql === 'COMMIT').length;

    it('decision transactions-of-different-runs-share-one: what is submitted together is committed together', async () => {
      await Promise.all(upTo(64).map((n) => submit(store, { id: `run-${n}` })));
      const before = commits();
      await Promise.all(upTo(64).map((n) => change(store, `run-${n}`, { status: 'running', attempt: 1, owner: 'w' })));
      expect(commits()).toBe(before + 1);
      await Promise.all(upTo(64).map((n) => appendOne(store, `run-${n}`, 2, 'a')));
      expect(commits()).toBe(before + 2);
      for (const n of upTo(64)) expect((await loaded(store, `run-${n}`)).sequence).toBe(2);
    });

    it('decision transactions-of-different-runs-share-one: one append alone is one statement in its transaction', async () => {
      await running(store);
      statements.length = 0;
      await appendOne(store, 'run-1', 3, 'a');
      const sent = statements.filter((sql) => !sql.startsWith('PRAGMA busy_timeout'));
      expect(sent.map((sql) => sql.split(' ')[0])).toEqual(['BEGIN', 'INSERT', 'COMMIT']);
    });

    it('STO-1: a refusal, a fenced append and a decider that throws leave their neighbours alone', async () => {
      await running(store);
      await running(store, { id: 'run-2' });
      await submit(store, { id: 'run-3' });
      const outcomes = await Promise.allSettled([
        appendOne(store, 'run-1', 3, 'a'),
        store.append({ runId: 'run-2', attempt: 7, firstSequence: 3, entries: [note('stale')], totals: totalsOf(0) }),
        store.transition({
          runId: 'run-3',
          decide: () => {
            throw new RangeError('no');
          },
        }),
        submit(store, { id: 'run-3', requestId: 'other' }),
        appendOne(store, 'run-2', 3, 'b'),
        submit(store, { id: 'run-4' }),
      ]);
      expect(outcomes.map(({ status }) => status)).toEqual([
        'fulfilled',
        'rejected',
        'rejected',
        'rejected',
        'fulfilled',
        'fulfilled',
      ]);
      expect(outcomes[1]).toMatchObject({ reason: { code: 'FENCED' } });
      expect(outcomes[2]).toMatchObject({ reason: new RangeError('no') });
      expect(notesOf(await journal(store, 'run-1'))).toEqual(['a']);
      expect(notesOf(await journal(store, 'run-2'))).toEqual(['b']);
    });

    it('STO-1: a job that fails after it has written is taken back alone', async () => {
      await running(store);
      await submit(store, { id: 'run-2' });
      // The header is written, then the entries cannot be: BigInt has no form in JSON.
      const broken = store.transition({
        runId: 'run-2',
        decide: () => ({ result: 1, run: { change: { recoveries: 9 }, entries: [note(1n as unknown as string)] } }),
      });
      const neighbours = [appendOne(store, 'run-1', 3, 'a'), submit(store, { id: 'run-3' })];
      await expect(broken).rejects.toThrow(TypeError);
      await Promise.all(neighbours);
      expect((await loaded(store, 'run-2')).recoveries).toBe(0);
      expect(notesOf(await journal(store, 'run-1'))).toEqual(['a']);
      expect((await loaded(store, 'run-3')).status).toBe('pending');
    });

    it('I2: nobody is told before the COMMIT', async () => {
      await running(store);
      statements.length = 0;
      const told: string[][] = [];
      await Promise.all(
        ['a', 'b'].map(async (value, index) => {
          await appendOne(store, 'run-1', 3 + index, value);
          told.push([...statements]);
        }),
      );
      for (const seen of told) expect(seen.at(-1)).toMatch(/^(COMMIT|PRAGMA busy_timeout = 5000)/);
      expect(told[0]).toContain('COMMIT');
    });

    it('decision transactions-of-different-runs-share-one: commits give the event loop its turns', async () => {
      await running(store);
      let ticks = 0;
      const timer = setInterval(() => (ticks += 1), 1);
      const until = performance.now() + 60;
      let sequence = 3;
      while (performance.now() < until) await appendOne(store, 'run-1', sequence++, 'x');
      clearInterval(timer);
      expect(ticks).toBeGreaterThan(3);
    });
  });

  describe("beside another process's write lock", () => {
    it('decision one-connection-of-sqlite: are tried again until it lets go, and the event loop runs on meanwhile', async () => {
      await running(store);
      const holder = await SqliteLockHolder.hold(subject.file);
      let longest = 0;
      let last = performance.now();
      const timer = setInterval(() => {
        longest = Math.max(longest, performance.now() - last);
        last = performance.now();
      }, 2);
      const append = appendOne(store, 'run-1', 3, 'a');
      const created = submit(store, { id: 'run-2' });
      await new Promise((next) => setTimeout(next, 300));
      expect(await isSettled(append)).toBe(false);
      expect((await loaded(store, 'run-1')).sequence).toBe(2);
      await holder.letGo();
      await Promise.all([append, created]);
      clearInterval(timer);
      expect(longest).toBeLessThan(250);
      expect(notesOf(await journal(store, 'run-1'))).toEqual(['a']);
    });

    it('STO-3: are refused as unavailable when it is held too long, and succeed afterwards', async () => {
      await running(store);
      const { store: quick } = await subject.open({ statementTimeoutMs: 60 });
      const holder = await SqliteLockHolder.hold(subject.file);
      const secret = 'sk-not-for-logs';
      const refused: unknown = await appendOne(quick, 'run-1', 3, secret).catch((error: unknown) => error);
      expect(refused).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
      expect(JSON.stringify([String(refused), (refused as Error).stack, refused])).not.toContain(secret);
      await holder.letGo();
      await appendOne(quick, 'run-1', 3, 'a');
      expect(notesOf(await journal(store, 'run-1'))).toEqual(['a']);
    });

    it("decision one-connection-of-sqlite: leave the host's busy timeout as it is, also when the host changes it", async () => {
      const timeout = async (): Promise<unknown> =>
        (await dataSource.query<{ timeout: number }[]>('PRAGMA busy_timeout'))[0]?.timeout;
      await running(store);
      expect(await timeout()).toBe(5_000);
      await dataSource.query('PRAGMA busy_timeout = 1234');
      await new Promise((next) => setTimeout(next, 30));
      await appendOne(store, 'run-1', 3, 'a');
      await submit(store, { id: 'run-2' });
      expect(await timeout()).toBe(1_234);
      const holder = await SqliteLockHolder.hold(subject.file);
      const append = appendOne(store, 'run-1', 4, 'b');
      await new Promise((next) => setTimeout(next, 30));
      expect(await timeout()).toBe(1_234);
      await holder.letGo();
      await append;
    });
  });

  it('STO-1: two stores on one file that append and claim at once lose nothing and keep every journal gapless', async () => {
    const { store: other } = await subject.open();
    const stores = [store, other];
    await Promise.all(upTo(12).map((n) => running(stores[n % 2] ?? store, { id: `run-${n}` }, `worker-${n % 2}`)));
    await Promise.all(
      upTo(12).map(async (n) => {
        const mine = stores[n % 2] ?? store;
        for (const value of upTo(20)) await appendOne(mine, `run-${n}`, value + 2, String(value));
      }),
    );
    for (const n of upTo(12)) {
      const entries = await journal(stores[(n + 1) % 2] ?? store, `run-${n}`);
      expect(entries.map(({ sequence }) => sequence)).toEqual(upTo(22));
      expect(notesOf(entries)).toEqual(upTo(20).map(String));
    }
  });

  it('STO-4: fail as unavailable while the data source is closed, and go on when it is open again', async () => {
    await running(store);
    await dataSource.destroy();
    await expect(appendOne(store, 'run-1', 3, 'a')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await expect(store.load('run-1')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await dataSource.initialize();
    await appendOne(store, 'run-1', 3, 'a');
    let append: Promise<void> | undefined;
    await dataSource.transaction(async () => {
      append = appendOne(store, 'run-1', 4, 'b');
      expect(await isSettled(append)).toBe(false);
    });
    await append;
    expect(notesOf(await journal(store, 'run-1'))).toEqual(['a', 'b']);
  });

  it('STO-4: a table that is gone is a broken promise, told without values', async () => {
    await running(store);
    await dataSource.query('DROP TABLE agent_run_journal');
    const refused: unknown = await appendOne(store, 'run-1', 3, 'sk-secret').catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: 'STORE_BROKEN' });
    expect(String(refused)).not.toContain('sk-secret');
  });

  it('CFG-6: closing lets what was submitted land, and refuses what comes after', async () => {
    await running(store);
    const append = appendOne(store, 'run-1', 3, 'a');
    await store.close();
    await append;
    await expect(appendOne(store, 'run-1', 4, 'b')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(dataSource.subscribers).toEqual([]);
    await store.close();
  });
});
