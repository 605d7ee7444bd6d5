/** The network swallows everything for thirty seconds, sockets stay open: B027, decision statements-have-deadlines, OWN-3. */
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../support/until.js';
import type { Partition } from '../../stores/typeorm/tcp-proxy.js';
import { describeLanes } from './describe-lanes.js';
import type { FaultLane } from './fault-lane.js';
import { runIds, started, type Turn } from './scripts.js';

const HOLE_MS = 30_000;
const LEASE_MS = 18_000;
const STATEMENT_TIMEOUT_MS = 3_000;
const SHUTDOWN_TIMEOUT_MS = 2_000;
/** A second each for calls that were told to stop, for signing off, and for closing the store. */
const GRACES_MS = 3_000;
/** The host's pool waits for connections that are being made, which end after statementTimeout at the latest. */
const POOL_MS = STATEMENT_TIMEOUT_MS;
/** For a machine that does other things too. */
const SLACK_MS = 2_000;

/** What each process is in the middle of when the hole opens: two runs of each. */
const CAUGHT: readonly { at: string; turns: readonly Turn[] }[] = [
  { at: 'pay', turns: [['look_up'], ['pay'], 'done'] },
  { at: 'refund', turns: [['refund'], 'done'] },
  { at: 'charge', turns: [['charge'], 'done'] },
  { at: 'look_up', turns: [['pay'], ['look_up'], 'done'] },
  { at: 'note', turns: [['note'], 'done'] },
  { at: 'model', turns: ['done'] },
];

async function play(lane: FaultLane, partition: Partition) {
  const options = {
    // Of the driver's own; pg has none by default.
    dataSource: lane.type === 'mariadb' ? { connectTimeout: STATEMENT_TIMEOUT_MS } : {},
    store: { statementTimeout: STATEMENT_TIMEOUT_MS },
    runs: { lease: LEASE_MS, shutdownTimeout: SHUTDOWN_TIMEOUT_MS, maxConcurrentRuns: 32 },
  };
  const staying = await lane.boot('staying', options);
  const [ending, outside] = await Promise.all([
    lane.boot('ending', options),
    lane.boot('outside', { ...options, direct: true }),
  ]);

  const caught = [staying, ending].flatMap((host) =>
    CAUGHT.flatMap(({ at, turns }) => [1, 2].map((n) => ({ host, at, runId: `${host.name}-${at}-${n}`, turns }))),
  );
  const gates = caught.map(({ host, at, runId }) => lane.farSide.hold({ by: host.name, tool: at, runId }));
  await Promise.all(caught.map(({ host, runId, turns }) => host.call('runs', 'start', started(runId, turns))));
  await until(() => gates.every(({ asks }) => asks.length > 0), 'everybody in the middle', { withinMs: 20_000 });

  lane.proxy.partition(partition);
  const beganAt = performance.now();
  await sleep(500);
  // Answers that come home while nothing can be written.
  for (const gate of gates) if (gate.which.runId?.endsWith('-1')) gate.open();
  await until(async () => (await staying.call('worker', 'status')).state === 'degraded', 'degraded', {
    withinMs: LEASE_MS,
    everyMs: 20,
  });
  const meanwhile = await staying.call('worker', 'status');
  const terminatedMs = await ending.terminate(25_000);

  const runs = await lane.rest(
    outside,
    caught.map(({ runId }) => runId),
  );
  const takenOverMs = performance.now() - beganAt;
  await sleep(HOLE_MS - (performance.now() - beganAt));
  const healedAt = performance.now();
  lane.proxy.endPartition();
  await until(async () => (await staying.call('worker', 'status')).state === 'ready', 'ready', {
    withinMs: 20_000,
    everyMs: 20,
  });
  const readyMs = performance.now() - healedAt;

  const fresh = runIds(16);
  await Promise.all(
    fresh.map((runId) => staying.call('runs', 'start', started(runId, [['refund'], ['note'], 'done']))),
  );
  const freshRuns = await lane.rest(staying, fresh);
  lane.farSide.openAll();
  await until(async () => (await staying.call('worker', 'status')).activeRuns === 0, 'nothing held', {
    withinMs: 20_000,
    everyMs: 20,
  });

  // A person looks up what became of the payments that were in flight.
  const asked = runs.filter(({ status }) => status === 'needs_attention');
  for (const { id, attention } of asked)
    for (const key of attention?.operations ?? [])
      await outside.call('runs', 'resolveTool', id, { key, output: { found: true }, by: 'ann' });
  const all = await lane.rest(
    outside,
    caught.map(({ runId }) => runId),
  );
  const pool = await lane.poolAtRest(staying);

  return {
    caught,
    asked: asked.map(({ id }) => id),
    statuses: [...all, ...freshRuns].map(({ id, status }) => `${id} ${status}`),
    meanwhile,
    terminatedMs,
    takenOverMs,
    readyMs,
    begunWithoutLease: lane.farSide.asks.filter(
      ({ by, at }) => by !== 'outside' && at > beganAt + LEASE_MS && at < healedAt,
    ),
    farSide: lane.farSide,
    notes: await lane.notes(),
    unsound: await lane.unsound([...caught.map(({ runId }) => runId), ...fresh]),
    metrics: await staying.call('metrics', 'read'),
    pool,
    closedMs: await staying.close(10_000),
    logs: [staying.log, ending.log, outside.log],
  };
}

const PARTITIONS: readonly { partition: Partition; title: string }[] = [
  { partition: 'loses', title: 'a network that loses everything for 30 s, and forgets the connections' },
  { partition: 'delays', title: 'a network that loses everything for 30 s, and then delivers what was sent again' },
];

for (const { partition, title } of PARTITIONS) {
  describeLanes(title, {
    play: (lane) => play(lane, partition),
    tests(facts) {
      it('OPS-1: the worker is degraded, and ready again with fresh connections', () => {
        expect(facts().meanwhile).toMatchObject({ state: 'degraded' });
        expect(facts().readyMs).toBeLessThan(LEASE_MS);
      });

      it('OWN-3: nothing is begun by a process whose lease has ended', () => {
        expect(facts().begunWithoutLease).toEqual([]);
      });

      it('CFG-6: SIGTERM in the middle of it ends the process within its own bound', () => {
        expect(facts().terminatedMs).toBeLessThan(SHUTDOWN_TIMEOUT_MS + GRACES_MS + POOL_MS + SLACK_MS);
      });

      it('OWN-5: another process has taken everything over after a lease and a tick', () => {
        expect(facts().takenOverMs).toBeLessThan(LEASE_MS + 10_000);
      });

      it('JRN-5: a person is asked about the payments that were in flight, and about nothing else', () => {
        const paying = facts()
          .caught.filter(({ at }) => at === 'pay')
          .map(({ runId }) => runId);
        expect([...facts().asked].sort()).toEqual(paying.sort());
      });

      it('I10: every run completes', () => {
        expect(facts().statuses.filter((status) => !status.endsWith(' completed'))).toEqual([]);
        expect(facts().unsound).toEqual([]);
        expect(facts().metrics.offenders).toBe(0);
      });

      it('JRN-4: no effect is doubled that its policy does not allow', () => {
        expect(facts().farSide.doubled('pay')).toEqual([]);
        expect(facts().farSide.doubled('charge')).toEqual([]);
        const keys = facts().farSide.doubled('refund');
        expect(keys).toEqual(keys.filter((key) => /^(staying|ending)-refund/.test(key)));
        expect(facts().notes.size).toBe(20);
        expect([...facts().notes].filter(([, count]) => count !== 1)).toEqual([]);
      });

      it('B027: the pool comes back to rest, and the process ends by itself', () => {
        expect(facts().pool).toMatchObject({ idle: facts().pool.open, waiting: 0 });
        expect(facts().closedMs).toBeLessThan(5_000);
        for (const log of facts().logs) expect(log).not.toMatch(/Warning:|Unhandled/);
      });
    },
  });
}
