/** Pools of one, two and ten connections, with many runs over them and connections that are cut: B131. */
import type { Run } from '../../../lib/contracts/run-view.js';
import { until } from '../../support/until.js';
import { describeLanes } from './describe-lanes.js';
import type { FaultLane } from './fault-lane.js';
import type { PoolFacts } from './host-process.js';
import { started, type Turn } from './scripts.js';

const SIZES = [1, 2, 10] as const;
/** For each packet to the server. A transaction has about five of them, on a fresh connection twice as many: more than one in ten is cut. */
const CUT_ODDS = 0.03;
const SHORT_RUNS = 200;
const CONCURRENT = 20;

interface PoolOutcome {
  whileAllWait: PoolFacts;
  hostQueryMs: number;
  cuts: number;
  runs: Run[];
  atRest: PoolFacts;
  closedMs: number;
  log: string;
}

async function playWith(lane: FaultLane, poolSize: number): Promise<PoolOutcome> {
  const host = await lane.boot(`pool-${poolSize}`, {
    dataSource: { poolSize },
    store: { statementTimeout: '8s' },
    runs: { lease: '48s', maxConcurrentRuns: CONCURRENT },
    hasNotes: poolSize > 1,
  });
  const named = (what: string, count: number): string[] =>
    Array.from({ length: count }, (_, index) => `pool-${poolSize}-${what}-${index + 1}`);

  // In model calls, in tools, and waiting for an approval, all at once.
  const waiting: { runIds: string[]; tool: string; turns: readonly Turn[] }[] = [
    { runIds: named('model', 8), tool: 'model', turns: ['done'] },
    { runIds: named('tool', 8), tool: 'look_up', turns: [['look_up'], 'done'] },
    { runIds: named('approval', 4), tool: 'sign', turns: [['sign'], 'done'] },
  ];
  const [models, tools, approvals] = waiting.map(({ runIds }) => runIds) as [string[], string[], string[]];
  const gates = [
    ...models.map((runId) => lane.farSide.hold({ tool: 'model', runId })),
    ...tools.map((runId) => lane.farSide.hold({ tool: 'look_up', runId })),
  ];
  await Promise.all(
    waiting.flatMap(({ runIds, turns }) => runIds.map((runId) => lane.start(host, started(runId, turns)))),
  );
  const asked = await lane.rest(host, approvals);
  await until(() => gates.every(({ asks }) => asks.length > 0), 'everybody waiting', { withinMs: 20_000 });
  const whileAllWait = await lane.poolAtRest(host);
  const begun = performance.now();
  await host.call('database', 'query', 'SELECT 1');
  const hostQueryMs = performance.now() - begun;
  for (const gate of gates) gate.open();
  for (const { id, interactions } of asked)
    await host.call('runs', 'respond', id, interactions[0]?.id ?? '', { decision: 'approve', by: 'ann' });

  const random = seeded(poolSize);
  let cuts = 0;
  lane.proxy.fateOf = () => {
    if (random() >= CUT_ODDS) return 'pass';
    cuts += 1;
    return cuts % 2 === 0 ? 'cut before' : 'cut after';
  };
  const short = named('short', SHORT_RUNS);
  const turns = poolSize > 1 ? [['refund', 'note'], 'done'] : [['refund'], 'done'];
  await Promise.all(short.map((runId) => lane.start(host, started(runId, turns))));
  const runs = await lane.rest(host, [...models, ...tools, ...approvals, ...short]);
  lane.proxy.fateOf = undefined;
  return {
    whileAllWait,
    hostQueryMs,
    cuts,
    runs,
    atRest: await lane.poolAtRest(host),
    closedMs: await host.close(10_000),
    log: host.log,
  };
}

/** The same numbers each time, from 0 to 1. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

describeLanes('220 runs on a small pool whose connections are cut in one transaction of ten', {
  async play(lane) {
    const outcomes = new Map<number, PoolOutcome>();
    for (const size of SIZES) outcomes.set(size, await playWith(lane, size));
    return { outcomes, farSide: lane.farSide, notes: await lane.notes() };
  },

  tests(facts) {
    describe.each(SIZES)('a pool of %s', (size) => {
      const outcome = (): PoolOutcome => facts().outcomes.get(size) as PoolOutcome;

      it('B131: nobody holds a connection during model calls, tools and waits: the host has them all', () => {
        const { whileAllWait, hostQueryMs } = outcome();
        expect(whileAllWait).toMatchObject({ idle: whileAllWait.open, waiting: 0 });
        expect(hostQueryMs).toBeLessThan(2_000);
      });

      it('B131: every run completes, whatever is cut', () => {
        expect(outcome().cuts).toBeGreaterThan(20);
        expect(outcome().runs).toHaveLength(SHORT_RUNS + 20);
        expect(outcome().runs.filter(({ status }) => status !== 'completed')).toEqual([]);
      });

      it('B131: the pool comes to rest, no larger than it may be, and the process ends by itself', () => {
        const { atRest, closedMs, log } = outcome();
        expect(atRest).toMatchObject({ idle: atRest.open, waiting: 0 });
        expect(atRest.open).toBeLessThanOrEqual(size);
        expect(closedMs).toBeLessThan(5_000);
        expect(log).not.toMatch(/Warning:|Unhandled|ERROR/);
      });
    });

    it('JRN-4: no effect is doubled on any of them', () => {
      for (const tool of ['refund', 'look_up', 'sign'])
        expect([tool, facts().farSide.doubled(tool)]).toEqual([tool, []]);
      expect(facts().farSide.effects('refund').size).toBe(SIZES.length * SHORT_RUNS);
      expect(facts().notes.size).toBe((SIZES.length - 1) * SHORT_RUNS);
      expect([...facts().notes].filter(([, count]) => count !== 1)).toEqual([]);
    });
  },
});
