/** The server is killed under running runs and comes back on the same data: decision a-result-in-hand-is-offered-again, I10, STO-4. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Run, WorkerStatus } from '../../../lib/contracts/run-view.js';
import { until } from '../../support/until.js';
import { describeLanes } from './describe-lanes.js';
import { runIds, started } from './scripts.js';

const LEASE_MS = 12_000;
/** A sixth of the lease, as the guide says. */
const STATEMENT_TIMEOUT_MS = 2_000;
const OUTAGE_MS = 2_000;
const TURNS = [['look_up', 'refund'], ['pay', 'charge'], ['note'], 'done'] as const;
const FIRST = runIds(32);
const SECOND = runIds(32, 33);
/** Their payments are made before the outage, and answered during it. */
const PAID_MEANWHILE = FIRST.slice(0, 8);

describeLanes('a server that is killed under 32 runs and started again', {
  async play(lane) {
    const host = await lane.boot('a', {
      store: { statementTimeout: STATEMENT_TIMEOUT_MS },
      runs: { lease: LEASE_MS, maxConcurrentRuns: 32 },
    });
    const status = (): Promise<WorkerStatus> => host.call('worker', 'status');

    const outage = async (): Promise<{ meanwhile: WorkerStatus; endedAt: Date }> => {
      await lane.server.kill();
      await until(async () => (await status()).state === 'degraded', 'degraded', { withinMs: 15_000, everyMs: 20 });
      const meanwhile = await status();
      await sleep(OUTAGE_MS);
      await lane.server.start();
      return { meanwhile, endedAt: new Date() };
    };

    const held = PAID_MEANWHILE.map((runId) => lane.farSide.hold({ tool: 'pay', runId }));
    await Promise.all(FIRST.map((runId) => host.call('runs', 'start', started(runId, TURNS))));
    await until(() => held.every(({ asks }) => asks.length > 0), 'eight payments in flight', { withinMs: 20_000 });
    const answering = sleep(OUTAGE_MS / 2).then(() => held.forEach((gate) => gate.open()));
    const first = await outage();
    await answering;
    const runs = await lane.rest(host, FIRST);

    // And in the middle of everything: each of these runs takes sixteen packets to its end, and most have taken a few.
    lane.proxy.latencyMs = 5;
    const asked = lane.farSide.asks.length;
    await Promise.all(SECOND.map((runId) => host.call('runs', 'start', started(runId, TURNS))));
    await until(() => lane.farSide.asks.length > asked + 64, 'runs in the middle', { withinMs: 20_000 });
    const second = await outage();
    lane.proxy.latencyMs = 0;
    runs.push(...(await lane.rest(host, SECOND)));
    await until(async () => ((await status()).lastHeartbeatAt ?? 0) > second.endedAt, 'a heartbeat', {
      withinMs: LEASE_MS,
      everyMs: 50,
    });

    return {
      runs,
      during: [first.meanwhile, second.meanwhile],
      after: await status(),
      metrics: await host.call('metrics', 'read'),
      notes: await lane.notes(),
      unsound: await lane.unsound([...FIRST, ...SECOND]),
      farSide: lane.farSide,
      pool: await lane.poolAtRest(host),
      closedWithinMs: await host.close(10_000),
      log: host.log,
    };
  },

  tests(facts) {
    it('I10, STO-4: every run completes, and nobody is asked for anything', () => {
      expect(facts().runs.map(ended)).toEqual([...FIRST, ...SECOND].map((id) => `${id} completed done`));
      expect(facts().unsound).toEqual([]);
    });

    it('decision a-result-in-hand-is-offered-again: a payment that is answered while the server is down is recorded when it is back, and never repeated', () => {
      for (const runId of PAID_MEANWHILE) expect(facts().farSide.of({ tool: 'pay', runId })).toHaveLength(1);
    });

    it('JRN-4: no effect is doubled', () => {
      for (const tool of ['look_up', 'refund', 'pay', 'charge']) {
        expect([tool, facts().farSide.doubled(tool)]).toEqual([tool, []]);
        expect([tool, facts().farSide.effects(tool).size]).toEqual([tool, 64]);
      }
      expect(facts().notes.size).toBe(64);
      expect([...facts().notes].filter(([, count]) => count !== 1)).toEqual([]);
    });

    it('OPS-1: the worker is degraded meanwhile, says why, and is ready when its heartbeat comes back', () => {
      for (const status of facts().during)
        expect(status).toMatchObject({ state: 'degraded', reason: expect.stringContaining('STORE_UNAVAILABLE') });
      expect(facts().after).toMatchObject({ state: 'ready', activeRuns: 0 });
      expect(facts().metrics.offenders).toBe(0);
    });

    it('CFG-6: nothing is left open: the process ends by itself, and has warned of nothing but the outage', () => {
      expect(facts().closedWithinMs).toBeLessThan(5_000);
      expect(facts().log).not.toMatch(/Warning:|Unhandled|ERROR/);
      expect(facts().pool).toMatchObject({ idle: facts().pool.open, waiting: 0 });
    });
  },
});

function ended({ id, status, output }: Run): string {
  return `${id} ${status} ${String(output)}`;
}
