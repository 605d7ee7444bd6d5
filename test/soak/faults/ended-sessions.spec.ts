/** The server ends sessions: those that are idle for two seconds, and all of them at once, again and again: B130. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Run } from '../../../lib/contracts/run-view.js';
import { until } from '../../support/until.js';
import { describeLanes } from './describe-lanes.js';
import type { FaultLane, LaneHostOptions } from './fault-lane.js';
import type { HostError, HostProcess } from './host-process.js';
import { runIds, started } from './scripts.js';

const IDLE_LIMIT_S = 2;
const WAIT_MS = 10_000;
/** Far beyond what an answer and a claim take, and far below the next poll, heartbeat or job. */
const AT_ONCE_MS = 5_000;
/** Nobody looks by himself meanwhile, so that nothing keeps a session busy. */
const SELDOM = {
  pollInterval: '5m',
  reconcileEvery: '5m',
  backoffEvery: '5m',
  expireEvery: '5m',
  lease: '3m',
} as const satisfies LaneHostOptions['runs'];

async function sessions(lane: FaultLane): Promise<number[]> {
  const rows = await lane.query(
    lane.type === 'postgres'
      ? `SELECT pid AS id FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
      : `SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()`,
  );
  return rows.map(({ id }) => Number(id));
}

async function endAll(lane: FaultLane): Promise<number> {
  const ids = await sessions(lane);
  for (const id of ids)
    // One that has ended by itself is none to be ended.
    await lane.query(lane.type === 'postgres' ? `SELECT pg_terminate_backend(${id})` : `KILL ${id}`).catch(() => null);
  return ids.length;
}

/** Asking again where the database did not answer: a decision of which the answer was lost is taken. */
async function approve(host: HostProcess, runs: readonly Run[]): Promise<void> {
  const answer = async ({ id, interactions }: Run): Promise<boolean> => {
    const decision = { decision: 'approve', by: 'ann' } as const;
    const error = await host.call('runs', 'respond', id, interactions[0]?.id ?? '', decision).then(
      () => null,
      (thrown: HostError) => thrown,
    );
    if (error === null || error.code === 'ALREADY_DECIDED') return true;
    if (error.code === 'STORE_UNAVAILABLE') return false;
    throw error;
  };
  await Promise.all(
    runs.map((run) => until(() => answer(run), `the approval of ${run.id}`, { withinMs: 30_000, everyMs: 50 })),
  );
}

const outcomes = (runs: readonly Run[]): string[] => runs.map(({ id, status }) => `${id} ${status}`);
const completed = (ids: readonly string[]): string[] => ids.map((id) => `${id} completed`);

describeLanes('sessions that the server ends when they were idle for two seconds', {
  settings: (type) => ({
    arguments:
      type === 'mariadb'
        ? [`--wait-timeout=${IDLE_LIMIT_S}`, `--interactive-timeout=${IDLE_LIMIT_S}`]
        : ['-c', `idle_session_timeout=${IDLE_LIMIT_S}s`, '-c', `idle_in_transaction_session_timeout=${IDLE_LIMIT_S}s`],
  }),

  async play(lane) {
    const own = lane.type === 'mariadb' ? 'SET SESSION wait_timeout = 600' : `SET idle_session_timeout = 0`;
    await lane.query(own);
    const host = await lane.boot('a', { direct: true, runs: SELDOM });
    const ids = runIds(8);
    await Promise.all(ids.map((runId) => host.call('runs', 'start', started(runId, [['sign'], ['note'], 'done']))));
    const asked = await lane.rest(host, ids);
    await sleep(WAIT_MS);
    const left = await sessions(lane);
    const begun = performance.now();
    await approve(host, asked);
    const runs = await lane.rest(host, ids);
    const ms = performance.now() - begun;

    // The host's statement and a tool's own, with longer than the limit between BEGIN and the next one.
    const slow = lane.farSide.hold({ tool: 'note' });
    await host.call('runs', 'start', started('slow', [['note'], 'done']));
    await until(() => slow.asks.length > 0, 'a transactional tool', { withinMs: 20_000, everyMs: 10 });
    await sleep(IDLE_LIMIT_S * 1_000 + 1_500);
    slow.open();
    const [slowRun] = await lane.rest(host, ['slow']);
    return {
      ids,
      left,
      ms,
      runs,
      slowRun,
      notes: await lane.notes(),
      farSide: lane.farSide,
      unsound: await lane.unsound([...ids, 'slow']),
      status: await host.call('worker', 'status'),
      closedMs: await host.close(10_000),
      log: host.log,
    };
  },

  tests(facts) {
    it('B130: an approval that comes after ten seconds finds no session, and is taken at once', () => {
      expect(facts().left).toEqual([]);
      expect(outcomes(facts().runs)).toEqual(completed(facts().ids));
      expect(facts().ms).toBeLessThan(AT_ONCE_MS);
      expect(facts().farSide.doubled('sign')).toEqual([]);
    });

    it('B130: a transactional tool whose session is ended in the middle is run again, and its row is there once', () => {
      expect(facts().slowRun).toMatchObject({ status: 'completed' });
      expect(facts().farSide.of({ tool: 'note', runId: 'slow' }).length).toBeGreaterThan(1);
      expect([...facts().notes.values()]).toEqual([...facts().ids, 'slow'].map(() => 1));
      expect(facts().unsound).toEqual([]);
    });

    it('STO-4: nothing of it is trouble of the worker', () => {
      expect(facts().status).toMatchObject({ state: 'ready', activeRuns: 0 });
      expect(facts().closedMs).toBeLessThan(5_000);
      expect(facts().log).not.toMatch(/Unhandled|ERROR/);
    });
  },
});

const ROUNDS = 8;
const RUNS_A_ROUND = 32;
const TURNS = [['look_up', 'refund'], ['pay', 'charge', 'sign'], ['note'], 'done'] as const;

describeLanes('all sessions ended at once, again and again, under the runs of two processes', {
  async play(lane) {
    const options: LaneHostOptions = {
      direct: true,
      store: { statementTimeout: '5s' },
      runs: { lease: '30s', maxConcurrentRuns: 32 },
    };
    const hosts = [await lane.boot('a', options), await lane.boot('b', options)] as const;
    const random = seeded(7);
    const all: string[] = [];
    const runs: Run[] = [];
    const roundMs: number[] = [];
    let ended = 0;
    const endSome = async (times: number): Promise<void> => {
      for (let time = 0; time < times; time++) {
        await sleep(random() * 100);
        ended += await endAll(lane);
      }
    };
    for (let round = 0; round < ROUNDS; round++) {
      const ids = runIds(RUNS_A_ROUND, round * RUNS_A_ROUND + 1);
      const begun = performance.now();
      const starting = Promise.all(
        ids.map((runId, n) => lane.start(hosts[n % 2 === 0 ? 0 : 1], started(runId, TURNS))),
      );
      await endSome(round);
      await starting;
      const waiting = await lane.rest(hosts[0], ids);
      const answering = Promise.all(
        hosts.map((host, n) =>
          approve(
            host,
            waiting.filter((_, m) => m % 2 === n),
          ),
        ),
      );
      await endSome(round);
      await answering;
      runs.push(...(await lane.rest(hosts[1], ids)));
      roundMs.push(performance.now() - begun);
      all.push(...ids);
    }
    return {
      all,
      runs,
      ended,
      roundMs,
      notes: await lane.notes(),
      farSide: lane.farSide,
      unsound: await lane.unsound(all),
      pools: await Promise.all(hosts.map((host) => lane.poolAtRest(host))),
      closedMs: [await hosts[0].close(10_000), await hosts[1].close(10_000)],
      logs: hosts.map(({ log }) => log),
    };
  },

  tests(facts) {
    it('B130: many were ended, and every run completes without anybody waiting for a lease to end', () => {
      expect(facts().ended).toBeGreaterThan(ROUNDS * 4);
      expect(outcomes(facts().runs)).toEqual(completed(facts().all));
      expect(facts().roundMs.filter((ms) => ms > 15_000)).toEqual([]);
      expect(facts().unsound).toEqual([]);
    });

    it('JRN-4: no effect is doubled', () => {
      for (const tool of ['look_up', 'refund', 'pay', 'charge', 'sign']) {
        expect([tool, facts().farSide.doubled(tool)]).toEqual([tool, []]);
        expect([tool, facts().farSide.effects(tool).size]).toEqual([tool, facts().all.length]);
      }
      expect(facts().notes.size).toBe(facts().all.length);
      expect([...facts().notes].filter(([, count]) => count !== 1)).toEqual([]);
    });

    it('B130: no process is ended with them, and the pools come to rest', () => {
      for (const pool of facts().pools) expect(pool).toMatchObject({ idle: pool.open, waiting: 0 });
      for (const ms of facts().closedMs) expect(ms).toBeLessThan(5_000);
      for (const log of facts().logs) expect(log).not.toMatch(/Unhandled|ERROR/);
    });
  },
});

/** The same numbers each time, from 0 to 1. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}
