/** Connections end again and again under running runs, at every place of a transaction: B130, decision a-result-in-hand-is-offered-again. */
import type { Fate } from '../../stores/typeorm/tcp-proxy.js';
import { describeLanes } from './describe-lanes.js';
import { runIds, started } from './scripts.js';

const RUNS = runIds(32);
const TURNS = [['look_up', 'refund'], ['pay', 'charge'], ['note'], 'done'] as const;

/** Where connections are cut: at each n-th packet of the kind. Primes, so that the kinds meet in all ways. */
const CUTS: readonly { what: string; matches: RegExp; every: number; fate: Fate }[] = [
  { what: 'before a COMMIT', matches: /COMMIT(?!TED)/, every: 7, fate: 'cut before' },
  { what: 'after a COMMIT', matches: /COMMIT(?!TED)/, every: 5, fate: 'cut after' },
  { what: 'before a result is written', matches: /(?:tool|model)\.completed/, every: 11, fate: 'cut before' },
  { what: 'after a result is written', matches: /(?:tool|model)\.completed/, every: 13, fate: 'cut after' },
  { what: 'after a transaction has begun', matches: /START TRANSACTION|BEGIN ISOLATION/, every: 11, fate: 'cut after' },
];
/** All connections at once, each time so many packets have gone by. */
const CUT_ALL_EVERY = 150;

describeLanes('connections that are cut again and again under 32 runs', {
  async play(lane) {
    const host = await lane.boot('a', {
      store: { statementTimeout: '5s' },
      runs: { lease: '30s', maxConcurrentRuns: 32 },
    });

    const cuts = new Map<string, number>();
    const count = (what: string): number => {
      const next = (cuts.get(what) ?? 0) + 1;
      cuts.set(what, next);
      return next;
    };
    let packets = 0;
    lane.proxy.fateOf = (packet) => {
      packets += 1;
      if (packets % CUT_ALL_EVERY === 0) {
        count('all at once');
        lane.proxy.cut();
        return 'cut before';
      }
      const text = packet.toString('latin1');
      const cut = CUTS.find(({ what, matches, every }) => matches.test(text) && count(`seen ${what}`) % every === 0);
      if (!cut) return 'pass';
      count(cut.what);
      return cut.fate;
    };
    await Promise.all(RUNS.map((runId) => lane.start(host, started(runId, TURNS))));
    const runs = await lane.rest(host, RUNS);
    lane.proxy.fateOf = undefined;

    return {
      cuts,
      runs,
      farSide: lane.farSide,
      notes: await lane.notes(),
      unsound: await lane.unsound(RUNS),
      metrics: await host.call('metrics', 'read'),
      pool: await lane.poolAtRest(host),
      status: await host.call('worker', 'status'),
      closedMs: await host.close(10_000),
      log: host.log,
    };
  },

  tests(facts) {
    it.each(CUTS)('B130: they were cut $what', ({ what }) => {
      expect(facts().cuts.get(what)).toBeGreaterThan(1);
    });

    it('I10: every run completes, and nobody is asked for anything', () => {
      expect(facts().runs.map(({ id, status, output }) => `${id} ${status} ${String(output)}`)).toEqual(
        RUNS.map((id) => `${id} completed done`),
      );
      expect(facts().unsound).toEqual([]);
      expect(facts().metrics.offenders).toBe(0);
    });

    it('JRN-4: no effect is doubled: an unknown outcome is looked up before anything is repeated', () => {
      for (const tool of ['look_up', 'refund', 'pay', 'charge']) {
        expect([tool, facts().farSide.doubled(tool)]).toEqual([tool, []]);
        expect([tool, facts().farSide.effects(tool).size]).toEqual([tool, RUNS.length]);
      }
    });

    it('JRN-5b: each note is there once', () => {
      expect([...facts().notes.values()]).toEqual(RUNS.map(() => 1));
    });

    it('B131: the pool is at rest, the worker ready, and the process ends by itself', () => {
      expect(facts().pool).toMatchObject({ idle: facts().pool.open, waiting: 0 });
      expect(facts().status).toMatchObject({ state: 'ready', activeRuns: 0 });
      expect(facts().closedMs).toBeLessThan(5_000);
      expect(facts().log).not.toMatch(/Warning:|Unhandled|ERROR/);
    });
  },
});
