/** A tool that computes for three leases without letting anybody else have a turn: B025, OWN-2, decision the-lease-is-checked-before-each-effect. */
import type { Run } from '../../../lib/contracts/run-view.js';
import { until } from '../../support/until.js';
import { describeLanes } from './describe-lanes.js';
import { started } from './scripts.js';

const LEASE_MS = 4_000;
const SPIN_MS = 3 * LEASE_MS;

describeLanes('a tool that does not let its process breathe for three leases', {
  async play(lane) {
    const options = { direct: true, store: { statementTimeout: 600 }, runs: { lease: LEASE_MS } };
    const busy = await lane.boot('busy', options);
    const other = await lane.boot('other', options);
    lane.farSide.answerTo = ({ by, tool }) => ({
      of: by,
      ...(by === 'busy' && tool === 'look_up' && { spinMs: SPIN_MS }),
    });
    const begun = performance.now();
    await lane.start(busy, started('run-1', [['look_up'], ['refund'], 'done']));
    const [run] = (await lane.rest(other, ['run-1'])) as [Run];
    const takenOverMs = performance.now() - begun;
    const before = await other.call('store', 'readJournal', 'run-1', 0, 1_000);
    // Awake again, and a worker again.
    await until(
      async () => {
        const status = await busy.call('worker', 'status');
        return status.state === 'ready' && status.activeRuns === 0;
      },
      'the end of the computation',
      { withinMs: 4 * SPIN_MS, everyMs: 100 },
    );
    return {
      run,
      takenOverMs,
      before,
      after: await other.call('store', 'readJournal', 'run-1', 0, 1_000),
      asks: lane.farSide.of({ runId: 'run-1' }).map(({ by, tool }) => `${by} ${tool}`),
      unsound: await lane.unsound(['run-1']),
      closedMs: await busy.close(10_000),
      log: busy.log,
    };
  },

  tests(facts) {
    it('B025: another process takes the run over, and ends it', () => {
      expect(facts().run).toMatchObject({ status: 'completed', attempt: 2 });
      expect(facts().takenOverMs).toBeLessThan(SPIN_MS);
      expect(facts().asks.filter((ask) => ask.endsWith('refund'))).toEqual(['other refund']);
    });

    it('B025: what the first one brings home when it wakes up changes nothing, and it says so', () => {
      const results = facts().after?.entries.filter(({ type }) => type === 'tool.completed') ?? [];
      expect(results).toMatchObject([{ output: { of: 'other' } }, { output: { of: 'other' } }]);
      expect(facts().after).toEqual(facts().before);
      expect(facts().unsound).toEqual([]);
      expect(facts().log).toMatch(/this process stood still while a tool was at work[^\n]*look_up/);
      expect(facts().closedMs).toBeLessThan(5_000);
    });
  },
});
