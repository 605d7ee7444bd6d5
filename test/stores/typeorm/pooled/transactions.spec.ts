import type { RecordedText } from '../../../../lib/contracts/text.js';
import type { DataSource, QueryRunner } from 'typeorm';
import type { TransitionDecision, TransitionResult } from '../../../../lib/contracts/ports/run-store.port.js';
import type { RunChange, RunRecord } from '../../../../lib/contracts/run.js';
import type { TypeOrmRunStore } from '../../../../lib/stores/typeorm/typeorm-run.store.js';
import {
  anInteraction,
  aRun,
  beat,
  change,
  journal,
  loaded,
  note,
  notesOf,
  running,
  sameJson,
  submit,
  totalsOf,
  upTo,
} from '../../../../packages/contract/lib/scenario.js';
import { until } from '../../../support/until.js';
import { isolateSessions, onBorrowed } from '../borrowed-connections.js';
import { describeServers, ServerSubject, serverUrl, type ServerHost } from '../server-subject.js';
import { TcpProxy } from '../tcp-proxy.js';

const pending = Symbol('pending');

/** What became of the work in a moment; pending if nothing. */
async function soon<T>(work: Promise<T>): Promise<T | typeof pending> {
  return Promise.race([work, new Promise<typeof pending>((resolve) => setTimeout(() => resolve(pending), 150))]);
}

const codesOf = (outcomes: PromiseSettledResult<unknown>[]): string[] =>
  outcomes.map((one) => (one.status === 'fulfilled' ? 'ok' : ((one.reason as { code?: string }).code ?? 'error')));

describeServers('transactions of different runs on %s', (type) => {
  let subject: ServerSubject;
  let store: TypeOrmRunStore;
  let dataSource: DataSource;
  let connections: number;
  const holders: QueryRunner[] = [];

  beforeEach(async () => {
    subject = await ServerSubject.create(type);
    ({ store, dataSource } = await subject.open({ statementTimeoutMs: 15_000 }));
    connections = 0;
    onBorrowed(dataSource, () => (connections += 1));
  }, 60_000);

  afterEach(async () => {
    for (const holder of holders.splice(0)) if (!holder.isReleased) await letGo(holder, 'rollbackTransaction');
    await subject.dispose();
  }, 60_000);
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  const idOf = (n: number): string => `run-${String(n).padStart(2, '0')}`;
  const create = (count: number): Promise<unknown> =>
    Promise.all(upTo(count).map((n) => submit(store, { id: idOf(n) })));
  const finish = (n: number, output = `done ${n}`): Promise<TransitionResult<number>> =>
    store.transition({
      runId: idOf(n),
      decide: ({ run, now }) => ({
        result: n,
        run: {
          change: { status: 'completed', output, finishedAt: now },
          entries: [note(n)],
          totals: { ...run.totals, results: n },
        },
      }),
    });
  const decide = <T>(n: number, decision: (run: RunRecord) => TransitionDecision<T>): Promise<TransitionResult<T>> =>
    store.transition({ runId: idOf(n), decide: ({ run }) => decision(run) });
  /** A transaction of somebody else. */
  const hold = async (...sql: string[]): Promise<QueryRunner> => {
    const runner = subject.admin.createQueryRunner();
    holders.push(runner);
    await runner.startTransaction();
    for (const one of sql) await runner.query(one);
    return runner;
  };
  const letGo = async (runner: QueryRunner, how: 'commitTransaction' | 'rollbackTransaction'): Promise<void> => {
    await runner[how]();
    await runner.release();
  };

  it('decision transactions-of-different-runs-share-one: share a commit, and each does what it does alone', async () => {
    await Promise.all(upTo(40).map((n) => submit(store, { id: idOf(n), metadata: { n, odd: n % 2 === 1 } })));
    expect(connections).toBeLessThan(10);
    connections = 0;
    const answers = await Promise.all(upTo(40).map((n) => finish(n)));
    expect(connections).toBeLessThan(10);
    for (const n of upTo(40)) {
      expect(answers[n - 1]).toMatchObject({ outcome: 'done', result: n, run: { id: idOf(n), status: 'completed' } });
      const run = await loaded(store, idOf(n));
      expect(run).toMatchObject({ status: 'completed', output: `done ${n}`, revision: 2, sequence: 2 });
      expect(run.totals.results).toBe(n);
      expect(notesOf(await journal(store, idOf(n)))).toEqual([n]);
    }
    const { items } = await store.list({ metadata: { odd: true }, limit: 50 });
    expect(items).toHaveLength(20);
  });

  it('JRN-9: keep every character, size, number and null', async () => {
    const odd: Partial<RunRecord> = {
      actor: { id: '\0 \\u0000 \\" \' 😀 \ud83d \u2028', roles: [] },
      metadata: {
        text: '\0😀\ud83d "quoted" \\',
        large: 2 ** 53 - 1,
        small: -1.5e-7,
        yes: true,
        no: false,
        blank: ' ',
      },
      deadlineAt: 253_402_300_799_999,
      budgetMaxTotalTokens: 2 ** 53 - 1,
      requestId: 'ö"\\\' 1'.normalize('NFC').replace('ö', 'o'),
      wake: null,
    };
    await Promise.all([submit(store, { ...odd, id: idOf(1) }), submit(store, { id: idOf(2) })]);
    const changes: RunChange[] = [
      {
        output: 'x'.repeat(400_000),
        error: { code: 'A', message: '\0"\\😀\ud83d' as RecordedText },
        waitingFor: ['approval'],
        wake: null,
      },
      { output: null, error: null, waitingFor: [], wake: { cause: 'submitted' } },
    ];
    await Promise.all(
      upTo(2).map((n) => decide(n, () => ({ result: n, run: { change: changes[n - 1] as RunChange, entries: [] } }))),
    );
    for (const n of upTo(2)) {
      const { createdAt, ...stored } = await loaded(store, idOf(n));
      const { updatedAt } = stored;
      const expected = aRun(createdAt, {
        ...(n === 1 ? odd : {}),
        id: idOf(n),
        ...(changes[n - 1] as Partial<RunRecord>),
      });
      sameJson(
        { ...stored, createdAt },
        { ...expected, updatedAt, revision: 2, sequence: 1, totals: totalsOf(0) },
        idOf(n),
      );
    }
  });

  it('decision the-fence-locks-the-run: are never more in one statement than a server takes, and land together all the same', async () => {
    await create(7);
    // Each of them 2.7 MB of JSON in JSON: more than the 16 MB that MariaDB takes.
    const large = 'ö"'.repeat(450_000);
    connections = 0;
    await Promise.all(upTo(7).map((n) => finish(n, large)));
    expect(connections).toBeLessThan(7);
    for (const n of [1, 7]) expect((await loaded(store, idOf(n))).output).toBe(large);
  });

  describe('beside a run whose row somebody holds', () => {
    it('decision transactions-of-different-runs-share-one: are not stalled by it; that one waits, and sees what was committed', async () => {
      await create(6);
      const holder = await hold(`UPDATE agent_runs SET recoveries = 7 WHERE id = '${idOf(3)}'`);
      const held = decide(3, (run) => ({ result: run.recoveries }));
      await Promise.all([1, 2, 4, 5, 6].map((n) => finish(n)));
      expect(await soon(held)).toBe(pending);
      await letGo(holder, 'commitTransaction');
      expect(await held).toMatchObject({ outcome: 'done', result: 7 });
    });

    it('decision transactions-of-different-runs-share-one: are not stalled by many that wait one by one', async () => {
      await create(8);
      const holder = await hold(...upTo(6).map((n) => `SELECT id FROM agent_runs WHERE id = '${idOf(n)}' FOR UPDATE`));
      const held: Promise<unknown>[] = [];
      for (const n of upTo(6)) {
        held.push(finish(n));
        await new Promise((next) => setImmediate(() => setImmediate(next)));
      }
      await Promise.all([finish(7), submit(store, { id: idOf(9) })]);
      expect(await soon(Promise.race(held))).toBe(pending);
      await letGo(holder, 'rollbackTransaction');
      await Promise.all(held);
    });

    it('OWN-1: a claim does not wait for it, with company or without', async () => {
      await create(3);
      const holder = await hold(`SELECT id FROM agent_runs WHERE id = '${idOf(2)}' FOR UPDATE`);
      const answers = await Promise.all(
        upTo(3).map((n) => store.transition({ runId: idOf(n), skipLocked: true, decide: () => ({ result: n }) })),
      );
      expect(answers.map(({ outcome }) => outcome)).toEqual(['done', 'busy', 'done']);
      await letGo(holder, 'rollbackTransaction');
    });

    it('OWN-1: claims that come too late for a whole queue say so together', async () => {
      await create(30);
      const holder = await hold(`SELECT id FROM agent_runs FOR UPDATE`);
      connections = 0;
      const answers = await Promise.all(
        upTo(30).map((n) => store.transition({ runId: idOf(n), skipLocked: true, decide: () => ({ result: n }) })),
      );
      expect(new Set(answers.map(({ outcome }) => outcome))).toEqual(new Set(['busy']));
      expect(connections).toBeLessThan(8);
      await letGo(holder, 'rollbackTransaction');
      const unknown = await Promise.all(
        ['none-1', 'none-2'].map((runId) =>
          store.transition({ runId, skipLocked: true, decide: () => ({ result: 1 }) }),
        ),
      );
      expect(unknown.map(({ outcome }) => outcome)).toEqual(['not_found', 'not_found']);
    });
  });

  describe.each(['READ COMMITTED', 'REPEATABLE READ'])('at %s', (isolation) => {
    beforeEach(() => isolateSessions(dataSource, type, isolation));

    it('decision lock-first-read-later: are shown what was committed before their lock, and lose no message', async () => {
      await Promise.all(upTo(4).map((n) => running(store, { id: idOf(n) })));
      const { store: other } = await subject.open();
      // In each round a message is sent into every run while its owner looks into the inbox, from two processes.
      for (const round of upTo(15)) {
        const sent = upTo(4).map((n) =>
          other.transition({
            runId: idOf(n),
            decide: ({ inbox }) => ({
              result: null,
              inbox: [
                {
                  runId: idOf(n),
                  requestId: `message-${round}`,
                  order: inbox.length + 1,
                  sender: 'alice',
                  message: 'hello',
                  status: 'queued',
                  createdAt: 0,
                },
              ],
            }),
          }),
        );
        const seen = upTo(4).map((n) =>
          store.transition({
            runId: idOf(n),
            decide: ({ inbox, run }) => {
              const queued = inbox.filter(({ status }) => status === 'queued');
              return {
                result: queued.length,
                run: { change: { recoveries: run.recoveries + queued.length }, entries: [] },
                inbox: queued.map((message) => ({ ...message, status: 'delivered' })),
              };
            },
          }),
        );
        await Promise.all([...sent, ...seen]);
      }
      for (const n of upTo(4)) {
        const left = await store.transition({
          runId: idOf(n),
          decide: ({ inbox }) => ({ result: inbox.filter(({ status }) => status === 'queued').length }),
        });
        const { recoveries } = await loaded(store, idOf(n));
        expect(recoveries + (left.outcome === 'done' ? left.result : NaN)).toBe(15);
      }
    });

    it.each([
      ['cancel', `status = 'cancelled'`, { status: 'cancelled' }],
      ['takeover', 'attempt = 2', { attempt: 2 }],
    ])('I3: beside an uncommitted %s decide after it', async (_what, set, seen) => {
      await Promise.all(upTo(3).map((n) => running(store, { id: idOf(n) })));
      const holder = await hold(`UPDATE agent_runs SET ${set} WHERE id = '${idOf(2)}'`);
      const answers = upTo(3).map((n) => decide(n, ({ status, attempt }) => ({ result: { status, attempt } })));
      await Promise.all([answers[0], answers[2]]);
      expect(await soon(answers[1] as Promise<unknown>)).toBe(pending);
      await letGo(holder, 'commitTransaction');
      expect(await answers[1]).toMatchObject({ outcome: 'done', result: seen });
    });
  });

  describe('of which one fails', () => {
    it('decision transactions-of-different-runs-share-one: only that one fails: refused before it wrote, and after', async () => {
      await create(6);
      await finish(4);
      const decided = anInteraction({ id: 'asked', runId: idOf(5), status: 'used' });
      await decide(5, () => ({ result: null, interactions: [decided] }));
      const outcomes = await Promise.allSettled([
        finish(1),
        decide(2, () => {
          throw Object.assign(new Error('refused'), { code: 'MINE' });
        }),
        finish(3),
        // Settled stays settled (RUN-1).
        decide(4, () => ({ result: null, run: { change: { status: 'running' }, entries: [] } })),
        // What is used stays used; the run's row and its journal have been written by then.
        decide(5, () => ({
          result: null,
          run: { change: { recoveries: 3 }, entries: [note('never')] },
          interactions: [{ ...decided, status: 'pending' }],
        })),
        store.transition({ runId: 'nobody', decide: () => ({ result: null }) }),
      ]);
      expect(codesOf(outcomes)).toEqual(['ok', 'MINE', 'ok', 'ILLEGAL_TRANSITION', 'STORE_CONFLICT', 'ok']);
      expect((outcomes[5] as PromiseFulfilledResult<unknown>).value).toEqual({ outcome: 'not_found' });
      for (const n of [1, 3]) expect(await loaded(store, idOf(n))).toMatchObject({ status: 'completed', revision: 2 });
      expect(await loaded(store, idOf(5))).toMatchObject({ recoveries: 0, sequence: 1, revision: 1 });
    });

    it('EVT-4: are refused without a word of what they carried', async () => {
      await create(3);
      await subject.admin.query('DROP TABLE agent_run_journal');
      const outcomes = await Promise.allSettled(upTo(3).map((n) => finish(n, 'sk-secret')));
      for (const outcome of outcomes) {
        expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'STORE_UNAVAILABLE' } });
        const { reason } = outcome as PromiseRejectedResult;
        expect(JSON.stringify([String(reason), (reason as Error).stack, reason])).not.toContain('sk-secret');
      }
      await subject.dispose(false);
      subject = await ServerSubject.create(type);
    });
  });

  it('SUB-2: one of many equal requests is created, the others get it, and neighbours land', async () => {
    const { store: other } = await subject.open();
    const same = (n: number): Partial<RunRecord> => ({ id: idOf(n), requestScope: 'agent:support', requestId: 'once' });
    const results = await Promise.all(
      upTo(12).flatMap((n) => [
        submit(n % 2 ? store : other, same(n)),
        submit(n % 2 ? store : other, { id: `neighbour-${n}` }),
      ]),
    );
    const equal = results.filter((_, index) => index % 2 === 0);
    expect(equal.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(equal.map(({ run }) => run.id)).size).toBe(1);
    expect(results.filter((_, index) => index % 2 === 1).every(({ created }) => created)).toBe(true);
  });

  it('SUB-2: a key that a host is just inserting holds up only the run that has it', async () => {
    const { store: host, dataSource: its } = await subject.open();
    const runner = its.createQueryRunner();
    await runner.startTransaction();
    const same = { requestScope: 'agent:support', requestId: 'once' };
    await host.create({
      runId: idOf(1),
      sessionId: null,
      ...same,
      transaction: runner.manager,
      decide: ({ now }) => ({
        do: 'insert',
        run: aRun(now, { id: idOf(1), ...same }),
        entries: [],
        totals: totalsOf(0),
        session: null,
      }),
    });
    const mine = submit(store, { id: idOf(2), ...same });
    await Promise.all([3, 4, 5].map((n) => submit(store, { id: idOf(n) })));
    expect(await soon(mine)).toBe(pending);
    await runner.commitTransaction();
    await runner.release();
    expect(await mine).toMatchObject({ created: false, run: { id: idOf(1) } });
  });

  it('decision transactions-of-different-runs-share-one: never deadlock with each other, with appends or with heartbeats, from several processes', async () => {
    await Promise.all(upTo(12).map((n) => running(store, { id: idOf(n) })));
    const raced = (): Promise<ServerHost> =>
      subject.open({ statementTimeoutMs: 20_000 }, type === 'postgres' ? { applicationName: 'raced' } : {});
    const hosts = [await raced(), await raced()];
    const deadlocks = async (): Promise<number> => {
      const [row] = await subject.admin.query<{ deadlocks: string }[]>(
        'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
      );
      return Number(row?.deadlocks);
    };
    const others = async (): Promise<number> => {
      const rows = await subject.admin.query<unknown[]>(
        `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'raced'`,
      );
      return rows.length;
    };
    const before = type === 'postgres' ? await deadlocks() : 0;
    const order = (n: number, round: number): number => ((n * 5 + round * 7) % 12) + 1;
    for (const round of upTo(10)) {
      await Promise.all([
        ...hosts.map((host, index) => beat(host.store, `worker-${index}`)),
        ...hosts.flatMap(({ store: mine }) =>
          upTo(12).map((n) =>
            mine.transition({
              runId: idOf(order(n, round)),
              decide: ({ run }) => ({ result: null, run: { change: { recoveries: run.recoveries + 1 }, entries: [] } }),
            }),
          ),
        ),
        ...upTo(12).map((n) =>
          store.append({
            runId: idOf(n),
            attempt: 1,
            firstSequence: 2 + round,
            entries: [note(round)],
            totals: totalsOf(0),
          }),
        ),
      ]);
    }
    for (const host of hosts) await subject.close(host);
    // Only there are they counted for each database, and by a process that ends.
    if (type === 'postgres') await until(async () => (await others()) === 0);
    if (type === 'postgres') expect(await deadlocks()).toBe(before);
    for (const n of upTo(12)) {
      expect(await loaded(store, idOf(n))).toMatchObject({ recoveries: 20, revision: 22, sequence: 12 });
      expect(notesOf(await journal(store, idOf(n)))).toEqual(upTo(10));
    }
  });

  describe('whose connection is cut', () => {
    let proxy: TcpProxy;
    let far: TypeOrmRunStore;
    let commits: number;

    beforeEach(async () => {
      const { hostname, port } = serverUrl(type);
      proxy = await TcpProxy.to(hostname, Number(port));
      ({ store: far } = await subject.open({ statementTimeoutMs: 15_000 }, { host: '127.0.0.1', port: proxy.port }));
      commits = 0;
    });

    afterEach(async () => {
      proxy.fateOf = undefined;
      await far.close();
      await proxy.close();
    });

    const cutTheFirst = (what: RegExp): void => {
      proxy.fateOf = (packet) => (what.test(packet.toString('latin1')) && (commits += 1) === 1 ? 'cut after' : 'pass');
    };
    // Not the isolation level in what begins it.
    const COMMIT = /COMMIT(?!TED)/;

    it('B130: under COMMIT happen once, each of them', async () => {
      cutTheFirst(COMMIT);
      const results = await Promise.all(upTo(5).map((n) => submit(far, { id: idOf(n) })));
      expect(results.every(({ created }) => created)).toBe(true);
      // Only looked up: nobody had to make one again.
      expect(commits).toBe(1);
      commits = 0;
      cutTheFirst(COMMIT);
      await Promise.all(
        upTo(5).map((n) =>
          far.transition({
            runId: idOf(n),
            decide: ({ run }) => ({
              result: null,
              run: { change: { recoveries: run.recoveries + 1 }, entries: [note(`once ${n}`)] },
            }),
          }),
        ),
      );
      for (const n of upTo(5)) {
        expect(await loaded(store, idOf(n))).toMatchObject({ recoveries: 1, revision: 2, sequence: 2 });
        expect(notesOf(await journal(store, idOf(n)))).toEqual([`once ${n}`]);
      }
    });

    it('B130: before COMMIT happen all the same', async () => {
      await Promise.all(upTo(5).map((n) => submit(far, { id: idOf(n) })));
      cutTheFirst(/UPDATE/);
      await Promise.all(upTo(5).map((n) => change(far, idOf(n), { recoveries: n })));
      expect(commits).toBeGreaterThan(1);
      for (const n of upTo(5)) expect(await loaded(store, idOf(n))).toMatchObject({ recoveries: n, revision: 2 });
    });
  });

  it('decision statements-have-deadlines: a pool without a free connection is waited for no longer than each one’s deadline', async () => {
    const { store: small, dataSource: its } = await subject.open({ statementTimeoutMs: 200 }, { poolSize: 1 });
    const hog = its.createQueryRunner();
    await hog.connect();
    const begun = performance.now();
    const outcomes = await Promise.allSettled(upTo(5).map((n) => submit(small, { id: idOf(n) })));
    expect(codesOf(outcomes)).toEqual(upTo(5).map(() => 'STORE_UNAVAILABLE'));
    expect(performance.now() - begun).toBeLessThan(2_000);
    await hog.release();
    await Promise.all(upTo(5).map((n) => submit(small, { id: idOf(n) })));
  });

  it('B131: those handed in before `close` are carried out', async () => {
    await create(4);
    const { store: brief } = await subject.open();
    const work = Promise.all(upTo(4).map((n) => change(brief, idOf(n), { recoveries: 1 })));
    await brief.close();
    await work;
    for (const n of upTo(4)) expect((await loaded(store, idOf(n))).recoveries).toBe(1);
  });
});
