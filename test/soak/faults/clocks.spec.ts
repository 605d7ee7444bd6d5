/** Processes whose clocks are ten seconds before and behind the database's: I12, OWN-3. One lease lies between them and it, two between each other. */
import type { SequencedEntry } from '../../../lib/contracts/journal-entry.js';
import type { Run } from '../../../lib/contracts/run-view.js';
import { until } from '../../support/until.js';
import { describeLanes } from './describe-lanes.js';
import type { HostProcess } from './host-process.js';
import { started } from './scripts.js';

const OFFSET_MS = 10_000;
const LEASE_MS = 9_000;
const RECONCILE_MS = 500;
/** From a moment to somebody's next look, on a machine that does other things too. */
const SLACK_MS = 3_000;
const DEADLINE_MS = 4_000;

type Entry<T extends SequencedEntry['type']> = SequencedEntry & { type: T };

interface Seen {
  run: Run;
  entries: SequencedEntry[];
}

describeLanes('two processes whose clocks are ten seconds off, one before and one behind', {
  async play(lane) {
    const boot = (name: string, clockOffsetMs: number): Promise<HostProcess> =>
      lane.boot(name, {
        direct: true,
        clockOffsetMs,
        store: { statementTimeout: '1500ms' },
        runs: { lease: LEASE_MS, reconcileEvery: RECONCILE_MS, maxConcurrentRuns: 40 },
        agent: { modelRetry: { maxAttempts: 3, initialDelay: '2s' } },
      });
    const ahead = await boot('ahead', OFFSET_MS);
    const behind = await boot('behind', -OFFSET_MS);
    const both = [ahead, behind];
    const named = (what: string, count: number): { host: HostProcess; runId: string }[] =>
      both.flatMap((host) =>
        Array.from({ length: count }, (_, n) => ({ host, runId: `${host.name}-${what}-${n + 1}` })),
      );
    const see = async (runs: readonly { runId: string }[], through: HostProcess): Promise<Seen[]> => {
      const atRest = await lane.rest(
        through,
        runs.map(({ runId }) => runId),
      );
      return Promise.all(
        atRest.map(async (run) => {
          const read = await through.call('store', 'readJournal', run.id, 0, 1_000);
          return { run, entries: read?.entries ?? [] };
        }),
      );
    };

    // In flight for longer than a lease, with both processes looking for expired ones.
    const long = named('long', 8);
    const longGate = lane.farSide.hold({ tool: 'pay' });
    await Promise.all(long.map(({ host, runId }) => host.call('runs', 'start', started(runId, [['pay'], 'done']))));
    const longBegun = performance.now();

    const approvals = named('approval', 2);
    const backoffs = named('backoff', 2);
    const deadlines = named('deadline', 2);
    const deadlineGate = lane.farSide.hold({ tool: 'look_up' });
    const startedAt = Date.now();
    await Promise.all([
      ...approvals.map(({ host, runId }) =>
        host.call('runs', 'start', started(runId, [[{ name: 'sign', order: '2s' }], 'done'])),
      ),
      ...backoffs.map(({ host, runId }) =>
        host.call('runs', 'start', started(runId, [{ fail: { status: 503 }, text: 'done' }])),
      ),
      ...deadlines.map(({ host, runId }, index) =>
        host.call(
          'runs',
          'start',
          started(
            runId,
            [['look_up'], 'done'],
            index % 2 === 0 ? { deadline: new Date(Date.now() + DEADLINE_MS) } : { maxDuration: DEADLINE_MS },
          ),
        ),
      ),
    ]);
    const startedBefore = Date.now();
    // Suspended first, and settled when the ask has expired.
    await until(
      async () =>
        (await Promise.all(approvals.map(({ runId }) => ahead.call('runs', 'get', runId)))).every(
          ({ phase }) => phase === 'settled',
        ),
      'the expiry of all approvals',
      { withinMs: 30_000, everyMs: 100 },
    );
    const timed = {
      approvals: await see(approvals, behind),
      asks: (
        await Promise.all(approvals.map(({ runId }) => behind.call('store', 'interactions', { runId, limit: 10 })))
      ).flatMap(({ items }) => items),
      backoffs: await see(backoffs, ahead),
      deadlines: await see(deadlines, behind),
    };
    deadlineGate.open();

    await until(() => performance.now() - longBegun > LEASE_MS * 1.5, 'a lease and a half', {
      withinMs: 60_000,
      everyMs: 50,
    });
    longGate.open();
    const longSeen = await see(long, ahead);

    // Each of them dies once, with runs in flight that the other may repeat.
    const takeovers: { from: string; killedAt: number; seen: Seen[] }[] = [];
    const takeOver = async (dying: HostProcess, living: HostProcess): Promise<void> => {
      const runs = [1, 2, 3, 4].map((n) => ({ runId: `${dying.name}-killed-${n}` }));
      const gate = lane.farSide.hold({ tool: 'refund', by: dying.name });
      await Promise.all(runs.map(({ runId }) => dying.call('runs', 'start', started(runId, [['refund'], 'done']))));
      await until(() => gate.asks.length === runs.length, 'refunds in flight', { withinMs: 20_000 });
      await dying.discard();
      const killedAt = Date.now();
      gate.open();
      takeovers.push({ from: dying.name, killedAt, seen: await see(runs, living) });
    };
    await takeOver(ahead, behind);
    await takeOver(behind, await boot('ahead-again', OFFSET_MS));
    return { startedAt, startedBefore, timed, longSeen, takeovers, farSide: lane.farSide };
  },

  tests(facts) {
    const entriesOf = <T extends SequencedEntry['type']>({ entries }: Seen, type: T): Entry<T>[] =>
      entries.filter((entry): entry is Entry<T> => entry.type === type);

    it('OWN-3: neither takes the fresh lease of the other for an expired one', () => {
      for (const seen of facts().longSeen) {
        expect(seen.run).toMatchObject({ status: 'completed', attempt: 1 });
        expect(entriesOf(seen, 'run.lease_expired')).toEqual([]);
      }
      expect(facts().farSide.doubled('pay')).toEqual([]);
    });

    it('PPL-5: an approval expires by the clock of the database, whoever asked and whoever notices', () => {
      const { approvals, asks } = facts().timed;
      expect(asks).toHaveLength(approvals.length);
      for (const { status, createdAt, expiresAt, decidedAt } of asks) {
        expect(status).toBe('expired');
        expect(createdAt).toBeGreaterThanOrEqual(facts().startedAt - 1);
        expect(createdAt).toBeLessThan(facts().startedBefore + SLACK_MS);
        expect(expiresAt).toBe(createdAt + 2_000);
        expect(decidedAt).toBeGreaterThanOrEqual(expiresAt as number);
        expect(decidedAt).toBeLessThan((expiresAt as number) + SLACK_MS);
      }
      for (const { run } of approvals) expect(run).toMatchObject({ status: 'completed', output: 'done' });
    });

    it('MOD-2: a backoff lasts as long as it says by the clock of the database', () => {
      for (const seen of facts().timed.backoffs) {
        expect(seen.run.status).toBe('completed');
        const [backingOff] = entriesOf(seen, 'run.backing_off');
        const [resumed] = entriesOf(seen, 'run.resumed');
        expect(backingOff?.nextAttemptAt).toBe((backingOff?.at as number) + (backingOff?.delayMs as number));
        expect(resumed?.at).toBeGreaterThanOrEqual(backingOff?.nextAttemptAt as number);
        expect(resumed?.at).toBeLessThan((backingOff?.nextAttemptAt as number) + SLACK_MS);
      }
    });

    it('RUN-6: a deadline passes by the clock of the database', () => {
      for (const seen of facts().timed.deadlines) {
        expect(seen.run.status).toBe('timed_out');
        const [timedOut] = entriesOf(seen, 'run.timed_out');
        expect(timedOut?.at).toBeGreaterThanOrEqual(facts().startedAt + DEADLINE_MS);
        expect(timedOut?.at).toBeLessThan(facts().startedBefore + DEADLINE_MS + SLACK_MS);
      }
    });

    it('OWN-5: a process that dies keeps its runs to the end of its lease, and not for longer', () => {
      expect(facts().takeovers.map(({ from }) => from)).toEqual(['ahead', 'behind']);
      for (const { killedAt, seen } of facts().takeovers)
        for (const one of seen) {
          expect(one.run).toMatchObject({ status: 'completed', attempt: 2 });
          const [expired] = entriesOf(one, 'run.lease_expired');
          const [resumed] = entriesOf(one, 'run.resumed');
          // The last renewal was at most a third of a lease before the end.
          expect(expired?.expiredAt).toBeGreaterThan(killedAt + (LEASE_MS * 2) / 3 - SLACK_MS);
          expect(expired?.expiredAt).toBeLessThan(killedAt + LEASE_MS);
          expect(resumed?.at).toBeGreaterThanOrEqual(expired?.expiredAt as number);
          expect(resumed?.unownedForMs).toBe((resumed?.at as number) - (expired?.expiredAt as number));
          expect(resumed?.unownedForMs).toBeLessThan(RECONCILE_MS + SLACK_MS);
        }
    });
  },
});
