import type { DataSource, QueryRunner } from 'typeorm';
import type { TypeOrmRunStore } from '../../../../lib/stores/typeorm/typeorm-run.store.js';
import { journal, loaded, note, notesOf, running, totalsOf, upTo } from '../../../../packages/contract/lib/scenario.js';
import { isolateSessions, onBorrowed } from '../borrowed-connections.js';
import { describeServers, ServerSubject } from '../server-subject.js';

const pending = Symbol('pending');

/** What became of the work in a moment; pending if nothing. */
async function soon<T>(work: Promise<T>): Promise<T | typeof pending> {
  return Promise.race([work, new Promise<typeof pending>((resolve) => setTimeout(() => resolve(pending), 150))]);
}

describeServers('appends on %s', (type) => {
  let subject: ServerSubject;
  let store: TypeOrmRunStore;
  let dataSource: DataSource;
  let statements: number;

  beforeEach(async () => {
    subject = await ServerSubject.create(type);
    ({ store, dataSource } = await subject.open({ statementTimeoutMs: 5_000 }));
    statements = 0;
    onBorrowed(dataSource, () => (statements += 1));
  }, 60_000);

  afterEach(() => subject.dispose(), 60_000);
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  /** Known to come next, as the engine's appends are. */
  const append = (n: number, firstSequence = 3, value: unknown = n, attempt = 1, isNext = true): Promise<void> =>
    store.append({
      runId: `run-${n}`,
      attempt,
      firstSequence,
      entries: [note(value as string)],
      totals: totalsOf(0),
      isNext,
    });
  const start = async (count: number): Promise<void> => {
    for (const n of upTo(count)) await running(store, { id: `run-${n}` });
  };
  /** A transaction of somebody else on a run's row. */
  const hold = async (sql: string): Promise<QueryRunner> => {
    const runner = subject.admin.createQueryRunner();
    await runner.startTransaction();
    await runner.query(sql);
    return runner;
  };
  const letGo = async (runner: QueryRunner, how: 'commitTransaction' | 'rollbackTransaction'): Promise<void> => {
    await runner[how]();
    await runner.release();
  };

  it('decision transactions-of-different-runs-share-one: of different runs share a statement while another is on its way, and none is lost', async () => {
    await start(40);
    statements = 0;
    for (const round of upTo(3)) await Promise.all(upTo(40).map((n) => append(n, 2 + round, `${n}.${round}`)));
    expect(statements).toBeLessThan(30);
    for (const n of upTo(40)) {
      expect(notesOf(await journal(store, `run-${n}`))).toEqual(upTo(3).map((round) => `${n}.${round}`));
    }
  });

  it('JRN-9: keep every character and size in a shared statement', async () => {
    await start(4);
    const values = ['\0 \\u0000 \\" \' 😀 \ud83d \u2028', '"123"', 'x'.repeat(400_000), '{"a":[1,"]"]}'];
    await Promise.all(values.map((value, index) => append(index + 1, 3, value)));
    for (const [index, value] of values.entries()) {
      expect(notesOf(await journal(store, `run-${index + 1}`))).toEqual([value]);
    }
  });

  if (type === 'mariadb') {
    it("JRN-9: keep all of Unicode in a shared statement, though the host's database is latin1", async () => {
      await subject.admin.query(`ALTER DATABASE ${subject.database} CHARACTER SET latin1`);
      try {
        ({ store } = await subject.open());
        await start(3);
        await Promise.all(upTo(3).map((n) => append(n, 3, `😀ö\u65e5${n}`)));
        for (const n of upTo(3)) expect(notesOf(await journal(store, `run-${n}`))).toEqual([`😀ö\u65e5${n}`]);
      } finally {
        await subject.admin.query(`ALTER DATABASE ${subject.database} CHARACTER SET utf8mb4`);
      }
    });
  }

  it('decision the-fence-locks-the-run: are not stalled by a run whose row somebody holds; that one waits for it', async () => {
    await start(6);
    const holder = await hold(`SELECT id FROM agent_runs WHERE id = 'run-3' FOR UPDATE`);
    const held = append(3);
    const others = [1, 2, 4, 5, 6].map((n) => append(n));
    await Promise.all(others);
    expect(await soon(held)).toBe(pending);
    await letGo(holder, 'rollbackTransaction');
    await held;
    expect(notesOf(await journal(store, 'run-3'))).toEqual([3]);
  });

  describe.each(['READ COMMITTED', 'REPEATABLE READ'])('at %s', (isolation) => {
    beforeEach(() => isolateSessions(dataSource, type, isolation));

    describe.each([
      ['cancel', `UPDATE agent_runs SET status = 'cancelled' WHERE id = 'run-2'`],
      ['takeover', `UPDATE agent_runs SET attempt = 2 WHERE id = 'run-2'`],
    ])('I3: beside an uncommitted %s', (_what, sql) => {
      it.each([
        ['alone', 1],
        ['with company', 3],
      ])('are fenced when it commits, %s', async (_how, count) => {
        await start(3);
        const holder = await hold(sql);
        const mine = append(2);
        const others = upTo(3)
          .filter((n) => n !== 2)
          .slice(0, count - 1)
          .map((n) => append(n));
        const refused = expect(mine).rejects.toMatchObject({ code: 'FENCED' });
        await Promise.all(others);
        expect(await soon(mine.catch(() => undefined))).toBe(pending);
        await letGo(holder, 'commitTransaction');
        await refused;
        expect((await loaded(store, 'run-2')).sequence).toBe(2);
      });

      it('land when it is rolled back', async () => {
        await start(2);
        const holder = await hold(sql);
        const mine = append(2);
        expect(await soon(mine)).toBe(pending);
        await letGo(holder, 'rollbackTransaction');
        await mine;
        expect(notesOf(await journal(store, 'run-2'))).toEqual([2]);
      });
    });
  });

  it('STO-1: that are offered again are there already; others at their place are a conflict; neighbours land', async () => {
    await start(5);
    await append(2, 3, 'once');
    const outcomes = await Promise.allSettled([
      append(1),
      append(2, 3, 'once'),
      append(3, 9, 3, 1, false),
      append(4, 3, 4, 7),
      append(5),
      append(2, 3, 'other'),
    ]);
    expect(outcomes.map((one) => (one.status === 'fulfilled' ? 'ok' : (one.reason as { code: string }).code))).toEqual([
      'ok',
      'ok',
      'SEQUENCE_CONFLICT',
      'FENCED',
      'ok',
      'SEQUENCE_CONFLICT',
    ]);
    expect(notesOf(await journal(store, 'run-2'))).toEqual(['once']);
  });

  it('STO-1: of a place that another process has taken meanwhile are a conflict, though it was ours to take', async () => {
    await start(2);
    const { store: other } = await subject.open();
    await other.append({
      runId: 'run-1',
      attempt: 1,
      firstSequence: 3,
      entries: [note('theirs')],
      totals: totalsOf(0),
    });
    const outcomes = await Promise.allSettled([append(1), append(2)]);
    expect(outcomes).toMatchObject([
      { status: 'rejected', reason: { code: 'SEQUENCE_CONFLICT' } },
      { status: 'fulfilled' },
    ]);
    await append(1, 4);
    expect(notesOf(await journal(store, 'run-1'))).toEqual(['theirs', 1]);
  });

  it('decision a-result-in-hand-is-offered-again: land although every connection of the pool has died meanwhile', async () => {
    await start(3);
    await Promise.all(upTo(3).map((n) => append(n)));
    const others =
      type === 'postgres'
        ? `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
        : `SELECT CONCAT('KILL ', id) AS kill_it FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()`;
    const rows = await subject.admin.query<{ kill_it?: string }[]>(others);
    for (const { kill_it: kill } of rows) if (kill) await subject.admin.query(kill);
    await Promise.all(upTo(3).map((n) => append(n, 4)));
    for (const n of upTo(3)) expect(notesOf(await journal(store, `run-${n}`))).toEqual([n, n]);
  });

  it('EVT-4: are refused without a word of what they carried', async () => {
    await start(2);
    await subject.admin.query('DROP TABLE agent_run_journal');
    const outcomes = await Promise.allSettled([append(1, 3, 'sk-secret'), append(2, 3, 'sk-secret')]);
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'STORE_UNAVAILABLE' } });
      const { reason } = outcome as PromiseRejectedResult;
      expect(JSON.stringify([String(reason), (reason as Error).stack, reason])).not.toContain('sk-secret');
    }
    await subject.dispose(false);
    subject = await ServerSubject.create(type);
  });
});
