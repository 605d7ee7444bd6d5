/** Somebody sets the wall clock of a worker, which is then cut off from its database: OWN-3, decision the-lease-is-checked-before-each-effect. The monotonic clock goes on as ever. */
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../support/until.js';
import { describeLanes } from './describe-lanes.js';
import { started } from './scripts.js';

const LEASE_MS = 6_000;
const HOUR_MS = 3_600_000;

const STEPS: readonly { name: string; byMs: number }[] = [
  { name: 'back-an-hour', byMs: -HOUR_MS },
  { name: 'back-eight-seconds', byMs: -8_000 },
  { name: 'ahead-an-hour', byMs: HOUR_MS },
];

describeLanes('workers that are cut off after their clocks were set', {
  async play(lane) {
    const options = {
      store: { statementTimeout: 1_000 },
      // Of the driver's own; pg has none by default.
      dataSource: lane.type === 'mariadb' ? { connectTimeout: 1_000 } : {},
      runs: { lease: LEASE_MS },
    };
    const hosts = [];
    for (const step of STEPS)
      hosts.push({ step, host: await lane.boot(step.name, { ...options, clockOffsetMs: 0 }), runId: step.name });
    const other = await lane.boot('other', { ...options, direct: true });

    // Each is in the middle of a call that may be repeated, and of one before the next.
    const inFlight = hosts.map(({ host, runId }) => ({ host, runId, turns: [['refund'], 'done'] as const }));
    const before = hosts.map(({ host, runId }) => ({
      host,
      runId: `${runId}-next`,
      turns: [['look_up'], ['refund'], 'done'] as const,
    }));
    const gates = hosts.map(({ host }) => lane.farSide.hold({ by: host.name }));
    const model = [...inFlight, ...before].map(({ host, runId, turns }) =>
      host.call('runs', 'start', started(runId, turns)),
    );
    await Promise.all(model);
    // The model's answers pass, the tools wait.
    for (const gate of gates) gate.open();
    const toolGates = hosts.flatMap(({ host }) =>
      ['refund', 'look_up'].map((tool) => lane.farSide.hold({ by: host.name, tool })),
    );
    await until(() => toolGates.every(({ asks }) => asks.length > 0), 'all tools in flight', { withinMs: 20_000 });

    for (const { host, step } of hosts) await host.call('clock', 'set', step.byMs);
    // The lease is renewed once more under the new time.
    await sleep(LEASE_MS / 3 + 500);
    lane.proxy.partition('loses');
    const cutAt = performance.now();
    // What comes home while nothing can be written, and would lead to a refund.
    for (const gate of toolGates) if (gate.which.tool === 'look_up') gate.open();
    const runs = await lane.rest(
      other,
      [...inFlight, ...before].map(({ runId }) => runId),
    );
    lane.proxy.endPartition();
    for (const { host } of hosts)
      await until(async () => (await host.call('worker', 'status')).state === 'ready', 'ready again', {
        withinMs: 20_000,
        everyMs: 50,
      });
    lane.farSide.openAll();
    return { cutAt, runs, farSide: lane.farSide };
  },

  tests(facts) {
    it.each(STEPS)('OWN-3: by $name: no two are at the same call at the same time', ({ name }) => {
      const { farSide, cutAt } = facts();
      const repeated = farSide.of({ by: 'other', tool: 'refund', runId: name });
      const letGo = farSide.lettingsGo.filter(({ runId, tool }) => runId === name && tool === 'refund');
      expect(repeated).toHaveLength(1);
      expect(letGo).toHaveLength(1);
      expect(letGo[0]?.at).toBeLessThan(repeated[0]?.at as number);
      expect(letGo[0]?.at).toBeLessThan(cutAt + LEASE_MS);
    });

    it('OWN-3: nothing is begun without a lease, and every run is finished by the other worker', () => {
      expect(
        facts()
          .farSide.of({ tool: 'refund' })
          .filter(({ runId, by }) => runId.endsWith('-next') && by !== 'other'),
      ).toEqual([]);
      for (const run of facts().runs) expect(run).toMatchObject({ status: 'completed', output: 'done' });
    });
  },
});
