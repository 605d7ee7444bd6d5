import { DataSource } from 'typeorm';
import type { TypeOrmRunStore } from '../../../../lib/stores/typeorm/typeorm-run.store.js';
import {
  appendNotes,
  beat,
  change,
  claim,
  journal,
  loaded,
  note,
  notesOf,
  running,
  submit,
  totalsOf,
  upTo,
} from '../../../../packages/contract/lib/scenario.js';
import { until } from '../../../support/until.js';
import { ADMITTED, FAREWELLS } from '../farewells.js';
import { describeServers, ServerSubject, serverUrl } from '../server-subject.js';
import { TcpProxy } from '../tcp-proxy.js';

const pause = (ms: number): Promise<void> => new Promise((next) => setTimeout(next, ms));

describeServers('the connections of the store on %s', (type) => {
  let subject: ServerSubject;
  let proxy: TcpProxy;
  let store: TypeOrmRunStore;
  let dataSource: DataSource;

  beforeEach(async () => {
    subject = await ServerSubject.create(type);
    const { hostname, port } = serverUrl(type);
    proxy = await TcpProxy.to(hostname, Number(port));
    ({ store, dataSource } = await subject.open({ statementTimeoutMs: 400 }, { host: '127.0.0.1', port: proxy.port }));
  }, 60_000);

  afterEach(async () => {
    proxy.fateOf = undefined;
    proxy.answerOf = undefined;
    // Also those that are still waiting for a greeting that was swallowed.
    proxy.cut();
    await pause(50);
    await subject.dispose();
    await proxy.close();
  }, 60_000);
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  const appendOne = (firstSequence: number, value: string): Promise<void> =>
    store.append({
      runId: 'run-1',
      attempt: 1,
      firstSequence,
      entries: [note(value)],
      totals: totalsOf(0),
      isNext: true,
    });

  it('B027: that are swallowed by the network are given up in time, and fresh ones are used when it is back', async () => {
    await running(store);
    proxy.partition('loses');
    const begun = performance.now();
    const outcomes = await Promise.allSettled([
      appendOne(3, 'a'),
      beat(store, 'worker-1'),
      store.load('run-1'),
      submit(store, { id: 'run-2' }),
    ]);
    expect(performance.now() - begun).toBeLessThan(2_000);
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'STORE_UNAVAILABLE', retryable: true } });
    }
    proxy.endPartition();
    // What was swallowed never comes; only connections made from now on work.
    await appendOne(3, 'b');
    await beat(store, 'worker-1');
    expect(notesOf(await journal(store, 'run-1'))).toEqual(['b']);
  });

  it('B027: that could not be made in time give their places in the pool free', async () => {
    const { store: patient } = await subject.open(
      { statementTimeoutMs: 400 },
      // The driver of MariaDB has a limit of its own, ten seconds; that of Postgres waits for ever.
      { host: '127.0.0.1', port: proxy.port, poolSize: 5, ...(type === 'mariadb' && { connectTimeout: 400 }) },
    );
    proxy.partition('loses');
    for (const _round of upTo(2)) {
      const outcomes = await Promise.allSettled(upTo(10).map(() => patient.load('run-1')));
      expect(outcomes.map(({ status }) => status)).not.toContain('fulfilled');
    }
    proxy.endPartition();
    await until(
      () =>
        patient.load('run-1').then(
          () => true,
          () => false,
        ),
      'a fresh connection',
      { withinMs: 3_000 },
    );
  });

  it('CFG-6: on which nothing answers any more hold the closing of the store no longer than a second (B027)', async () => {
    const { store: patient } = await subject.open(
      { statementTimeoutMs: 20_000 },
      { host: '127.0.0.1', port: proxy.port },
    );
    await running(patient);
    proxy.partition('loses');
    const append = patient
      .append({ runId: 'run-1', attempt: 1, firstSequence: 3, entries: [note('a')], totals: totalsOf(0) })
      .catch((error: unknown) => error);
    await pause(50);
    const begun = performance.now();
    await patient.close();
    expect(performance.now() - begun).toBeLessThan(2_000);
    expect(await append).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    proxy.endPartition();
    await patient.open();
    expect((await loaded(patient, 'run-1')).status).toBe('running');
  });

  it('B130: that were cut while idle cost nothing but a repetition', async () => {
    await running(store);
    for (const round of upTo(3)) {
      proxy.cut();
      await pause(20);
      await appendNotes(store, 'run-1', 1, [round]);
      proxy.cut();
      await change(store, 'run-1', { recoveries: round });
    }
    expect(notesOf(await journal(store, 'run-1'))).toEqual([1, 2, 3]);
    expect((await loaded(store, 'run-1')).recoveries).toBe(3);
  });

  describe('that are cut after COMMIT was sent', () => {
    let commits: number;

    beforeEach(() => {
      commits = 0;
    });

    const cutTheFirstCommit = (): void => {
      // Not the isolation level in what begins it.
      proxy.fateOf = (packet) =>
        /COMMIT(?!TED)/.test(packet.toString('latin1')) && (commits += 1) === 1 ? 'cut after' : 'pass';
    };

    it('B130: do not make a claim twice', async () => {
      await submit(store);
      await beat(store, 'worker-1');
      cutTheFirstCommit();
      expect(await claim(store, 'run-1', 'worker-1')).toBe(1);
      const run = await loaded(store, 'run-1');
      expect(run).toMatchObject({ attempt: 1, owner: 'worker-1', status: 'running', sequence: 2 });
      await appendOne(3, 'a');
    });

    it('B130: do not create a run twice', async () => {
      cutTheFirstCommit();
      expect((await submit(store)).created).toBe(true);
      expect((await journal(store, 'run-1')).map(({ type: entry }) => entry)).toEqual(['run.submitted']);
    });

    // Only there does a new row hide from those who look for it until it is committed, and only there can a COMMIT be slowed down.
    if (type === 'postgres') {
      it('B130: know a run as created that was committed only after it was looked for', async () => {
        const { store: patient } = await subject.open(
          { statementTimeoutMs: 5_000 },
          { host: '127.0.0.1', port: proxy.port },
        );
        await subject.admin.query(
          `CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END'`,
        );
        await subject.admin.query(
          'CREATE CONSTRAINT TRIGGER slow_commit AFTER INSERT ON agent_runs DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slowly()',
        );
        try {
          cutTheFirstCommit();
          expect(await submit(patient)).toMatchObject({ created: true, run: { id: 'run-1', sequence: 1 } });
          expect(commits).toBeGreaterThan(0);
        } finally {
          await subject.admin.query('DROP TRIGGER slow_commit ON agent_runs');
          await subject.admin.query('DROP FUNCTION slowly');
        }
      });
    }
  });

  it('B130: that the server ends with the packet that lets them in do not end the process', async () => {
    await running(store);
    let farewells = 0;
    proxy.answerOf = (packet) => {
      if (!packet.includes(ADMITTED[type]) || farewells === 2) return packet;
      farewells += 1;
      return Buffer.concat([packet, FAREWELLS[type]]);
    };
    proxy.cut();
    await pause(20);
    await appendNotes(store, 'run-1', 1, ['a']);
    expect(farewells).toBe(2);
    expect(notesOf(await journal(store, 'run-1'))).toEqual(['a']);
  });

  it('B130: an append whose answer was lost is not made twice', async () => {
    await running(store);
    await appendOne(3, 'first');
    let cuts = 0;
    proxy.fateOf = (packet) => (packet.includes('only-once') && (cuts += 1) === 1 ? 'cut after' : 'pass');
    await appendOne(4, 'only-once');
    expect(cuts).toBeGreaterThan(1);
    expect(notesOf(await journal(store, 'run-1'))).toEqual(['first', 'only-once']);
  });

  it('B123: refuse what is larger than the server takes in one packet, and go on as if nothing had been', async () => {
    await running(store);
    const { maxCommitBytes } = store.traits;
    if (type === 'mariadb') {
      await expect(appendOne(3, 'x'.repeat(1.1 * (maxCommitBytes as number)))).rejects.toMatchObject({
        code: 'PAYLOAD_TOO_LARGE',
        family: 'request',
      });
    } else expect(maxCommitBytes).toBe(256 * 1024 * 1024);
    await appendOne(3, 'fits');
    expect(notesOf(await journal(store, 'run-1'))).toEqual(['fits']);
  });

  it('B131: work with a pool of one, beside a host that uses it too', async () => {
    const { store: small, dataSource: its } = await subject.open({ statementTimeoutMs: 5_000 }, { poolSize: 1 });
    await Promise.all(
      upTo(10).map(async (n) => {
        await running(small, { id: `run-${n}` });
        await appendNotes(small, `run-${n}`, 1, ['a', 'b']);
        await its.query('SELECT 1');
        await appendNotes(small, `run-${n}`, 1, ['c']);
      }),
    );
    for (const n of upTo(10)) expect(notesOf(await journal(small, `run-${n}`))).toEqual(['a', 'b', 'c']);
  });

  it('B131: are not waited for longer than the deadline, and one that comes late goes back to the pool', async () => {
    const { store: small, dataSource: its } = await subject.open({ statementTimeoutMs: 150 }, { poolSize: 1 });
    const hog = its.createQueryRunner();
    await hog.connect();
    await expect(small.load('run-1')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await hog.release();
    await pause(20);
    expect(await small.load('run-1')).toBeNull();
    expect(await its.query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('STO-3: deadlocks are repeated inside and reach nobody', async () => {
    await subject.admin.query('SELECT 1');
    const { store: other } = await subject.open({ statementTimeoutMs: 10_000 });
    const { store: patient } = await subject.open({ statementTimeoutMs: 10_000 });
    for (const n of [1, 2]) await submit(patient, { id: `run-${n}`, sessionId: 'session-1' });
    // Two deciders that change the same runs of a session again and again, from two processes.
    await Promise.all(
      [patient, other].flatMap((mine) =>
        upTo(15).map((n) =>
          mine.transition({
            runId: n % 2 ? 'run-1' : 'run-2',
            session: n % 3 === 0,
            decide: ({ run }) => ({ result: null, run: { change: { recoveries: run.recoveries + 1 }, entries: [] } }),
          }),
        ),
      ),
    );
    const [first, second] = [await loaded(other, 'run-1'), await loaded(other, 'run-2')];
    expect(first.recoveries + second.recoveries).toBe(30);
  });

  it('STO-4: are unavailable while the data source is closed, and work again when it is open', async () => {
    await running(store);
    await dataSource.destroy();
    await expect(store.load('run-1')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await expect(appendOne(3, 'a')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await dataSource.initialize();
    await appendOne(3, 'a');
    expect(notesOf(await journal(store, 'run-1'))).toEqual(['a']);
  });
});
