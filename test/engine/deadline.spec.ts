import { afterEach, describe, expect, it } from '@jest/globals';
import type { StartOptions } from '../../lib/contracts/run-requests.js';
import type { Scripted } from '../../lib/model/scripted/script-step.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, stopEngines, tool, type ToolOptions } from '../support/engine-harness.js';
import { FailingStore } from '../support/failing-store.js';
import { entriesOf, rowOf } from '../support/journal-of.js';
import { ManualClock } from '../support/manual-clock.js';
import { signal } from '../support/signal.js';

afterEach(stopEngines);

const MINUTE = 60_000;

async function timed(
  steps: Scripted[],
  options: ToolOptions = {},
  work: (aborted: () => boolean) => unknown = () => 'ok',
) {
  const clock = new ManualClock();
  const store = new FailingStore(new MemoryRunStore({ clock: () => clock.now() }));
  const seen = { aborted: () => false };
  const tools = [
    tool(
      'work',
      (_, { signal: stop }) => {
        seen.aborted = () => stop.aborted;
        return work(seen.aborted);
      },
      options,
    ),
    tool('gated', () => 'ok', { approval: 'rule', asks: () => ({}) }),
  ];
  const engine = await engineOver(
    store,
    agent(scriptedModel(steps), tools),
    { pollMs: 1_000, pollIdleMs: 1_000 },
    clock,
  );
  const start = (more: Partial<StartOptions>) => engine.runs.start({ agent: 'support', prompt: 'hello', ...more });
  return { clock, store, engine, seen, start };
}

describe('a deadline', () => {
  it('RUN-6: passing it aborts the call, settles the run as timed out, and leaves the uncertain call on record', async () => {
    const { clock, store, engine, seen, start } = await timed(
      [{ calls: [{ name: 'work' }] }],
      { recovery: 'manual' },
      () => new Promise(() => undefined),
    );
    const run = await start({ deadline: new Date(clock.now() + MINUTE), sessionId: 's' });
    const next = await start({ prompt: 'next', sessionId: 's', enqueue: true });
    await clock.advance(MINUTE - 1);
    expect((await engine.runs.get(run.id)).status).toBe('running');
    expect(seen.aborted()).toBe(false);
    await clock.advance(1);
    expect(await engine.runs.get(run.id)).toMatchObject({ status: 'timed_out', error: { code: 'RUN_TIMED_OUT' } });
    expect(seen.aborted()).toBe(true);
    expect(await entriesOf(store, run.id, 'tool.uncertain')).toMatchObject([
      { key: 'r1.m1.t0', interruptedBy: 'timeout' },
    ]);
    expect((await engine.runs.snapshot(run.id)).operations[1]).toMatchObject({
      status: 'uncertain',
      interruptedBy: 'timeout',
    });
    expect((await rowOf(store, next.id)).status).not.toBe('queued');
  });

  it('RUN-6: cuts a model request, which is no failure of the provider', async () => {
    const { clock, store, engine, start } = await timed([{ hang: true }]);
    const run = await start({ maxDuration: '1m' });
    await clock.advance(MINUTE);
    expect((await engine.runs.get(run.id)).status).toBe('timed_out');
    expect(await entriesOf(store, run.id, 'model.attempt_failed')).toEqual([]);
  });

  it("RUN-6: maxDuration counts active time only: waiting and backing off are not the run's doing", async () => {
    const { clock, engine, start } = await timed([
      { text: 'x', fail: { status: 503, retryAfterMs: 10 * MINUTE } },
      { hang: true },
    ]);
    const run = await start({ maxDuration: '1m' });
    await clock.advance(10 * MINUTE);
    expect((await engine.runs.get(run.id)).status).toBe('completed');
  });

  it('RUN-6: active time adds up over attempts', async () => {
    const release = signal();
    const { clock, store, engine, start } = await timed(
      [{ calls: [{ name: 'work' }] }, { hang: true }],
      {},
      () => release.promise,
    );
    const run = await start({ maxDuration: '1m' });
    await clock.advance(40_000);
    const drained = engine.stop();
    release.resolve();
    await clock.advance(0);
    await drained;
    expect(await rowOf(store, run.id)).toMatchObject({ status: 'pending', activeMs: 40_000 });
    await clock.advance(5 * MINUTE);
    const second = await engineOver(
      store,
      agent(scriptedModel([{ hang: true }])),
      { pollMs: 1_000, pollIdleMs: 1_000 },
      clock,
    );
    await clock.advance(19_000);
    expect((await second.runs.get(run.id)).status).toBe('running');
    await clock.advance(1_001);
    expect(await second.runs.get(run.id)).toMatchObject({ status: 'timed_out', attempt: 2 });
  });

  it('RUN-6: the active time of an owner that a person took the run from counts too', async () => {
    const { clock, store, engine, start } = await timed([{ hang: true }]);
    const run = await start({ maxDuration: '1m' });
    await clock.advance(40_000);
    const confirmation = { by: 'ann', reason: 'its machine is gone' };
    await engine.runs.resume(run.id, { allowRunningTakeover: true, confirmation });
    expect(await rowOf(store, run.id)).toMatchObject({ activeMs: 40_000 });
    await engine.runs.cancel(run.id);
  });

  it("RUN-6: the agent's maxDuration holds where start gives none, and start's own comes first", async () => {
    const clock = new ManualClock();
    const store = new MemoryRunStore({ clock: () => clock.now() });
    const engine = await engineOver(
      store,
      agent(scriptedModel([]), [], { maxDurationMs: 5_000 }),
      { worker: false },
      clock,
    );
    const bare = await engine.runs.start({ agent: 'support', prompt: 'x' });
    const own = await engine.runs.start({ agent: 'support', prompt: 'x', maxDuration: 9_000 });
    expect((await rowOf(store, bare.id)).frozen.maxDurationMs).toBe(5_000);
    expect((await rowOf(store, own.id)).frozen.maxDurationMs).toBe(9_000);
  });

  it.each(['waiting', 'queued', 'pending', 'retry_wait'] as const)(
    'RUN-6: one that is %s is settled by the reconcile sweep, its asks withdrawn',
    async (status) => {
      const { clock, store, engine, start } = await timed([
        status === 'retry_wait' ? { fail: { status: 503, retryAfterMs: 10 * MINUTE } } : { calls: [{ name: 'gated' }] },
      ]);
      if (status === 'queued') await start({ sessionId: 's' });
      if (status === 'pending') engine.worker.pause();
      const run = await start({ deadline: new Date(clock.now() + MINUTE), sessionId: 's', enqueue: true });
      await clock.advance(0);
      expect((await engine.runs.get(run.id)).status).toBe(status);
      await engine.recovery.reconcile();
      expect((await engine.runs.get(run.id)).status).toBe(status);
      await clock.advance(MINUTE);
      await engine.recovery.reconcile();
      expect(await engine.runs.get(run.id)).toMatchObject({
        status: 'timed_out',
        interactions: [],
        error: { code: 'RUN_TIMED_OUT' },
      });
      const asked = await store.interactions({ runId: run.id, limit: 10 });
      expect(asked.items.map((ask) => ask.status)).toEqual(status === 'waiting' ? ['cancelled'] : []);
    },
  );

  it("I12: is judged by the store's clock: a process whose own runs ahead waits for it", async () => {
    const clock = new ManualClock();
    let behind = 0;
    const store = new MemoryRunStore({ clock: () => clock.now() - behind });
    const engine = await engineOver(store, agent(scriptedModel([{ hang: true }])), { leaseMs: 600_000 }, clock);
    const run = await engine.runs.start({ agent: 'support', prompt: 'x', deadline: new Date(clock.now() + MINUTE) });
    behind = 3_000;
    await clock.advance(MINUTE);
    expect((await engine.runs.get(run.id)).status).toBe('running');
    await clock.advance(6_000);
    expect((await engine.runs.get(run.id)).status).toBe('timed_out');
  });

  it('RUN-6: a deadline decades away starts no timer that comes at once (B135)', async () => {
    const { clock, engine, start } = await timed([{ hang: true }]);
    const run = await start({ deadline: new Date(clock.now() + 50 * 365 * 86_400_000) });
    await clock.advance(MINUTE / 2);
    expect((await engine.runs.get(run.id)).status).toBe('running');
    await engine.runs.cancel(run.id);
  });

  it('RUN-6: what a tool recorded before the deadline is kept, also when its commit is still under way', async () => {
    const release = signal();
    const { clock, store, engine, start } = await timed(
      [{ calls: [{ name: 'work' }] }, { text: 'never' }],
      { recovery: 'manual' },
      () => release.promise,
    );
    const run = await start({ maxDuration: '1m' });
    await clock.advance(MINUTE - 1);
    const gate = store.hold('append');
    release.resolve();
    await gate.reached;
    await clock.advance(1);
    gate.open();
    await clock.advance(5_000);
    expect((await engine.runs.get(run.id)).status).toBe('timed_out');
    expect(await entriesOf(store, run.id, 'tool.completed')).toHaveLength(1);
    expect(await entriesOf(store, run.id, 'tool.uncertain')).toEqual([]);
    expect(engine.worker.status().state).toBe('ready');
  });

  it('RUN-6, I2: is settled and told once where a sweep of the same process finds it too (simulation, seed 1030286)', async () => {
    const { clock, store, engine, start } = await timed(
      [{ calls: [{ name: 'work' }] }],
      {},
      () => new Promise(() => {}),
    );
    const run = await start({ deadline: new Date(clock.now() + MINUTE) });
    // The database is gone when the deadline passes, until the lease is over.
    await clock.advance(MINUTE - 1);
    for (const method of ['transition', 'heartbeat'] as const) store.fail(method, { times: Number.POSITIVE_INFINITY });
    await clock.advance(2 * MINUTE);
    store.heal('transition');
    await engine.recovery.reconcile();
    store.heal();
    await clock.advance(MINUTE);
    expect((await engine.runs.get(run.id)).status).toBe('timed_out');
    expect(engine.told.filter(({ type }) => type === 'run.timed_out')).toHaveLength(1);
  });

  it('RUN-6: begins nothing that was announced in the moment it passed', async () => {
    const release = signal();
    const calls = { count: 0 };
    const clock = new ManualClock();
    const store = new FailingStore(new MemoryRunStore({ clock: () => clock.now() }));
    const work = tool('work', () => (calls.count++ === 0 ? release.promise : 'second'));
    const steps: Scripted[] = [{ calls: [{ name: 'work' }, { name: 'work' }] }];
    const engine = await engineOver(store, agent(scriptedModel(steps), [work], { toolConcurrency: 1 }), {}, clock);
    const run = await engine.runs.start({ agent: 'support', prompt: 'x', maxDuration: MINUTE });
    await clock.advance(MINUTE - 1);
    const gate = store.hold('append', { after: true });
    release.resolve();
    await gate.reached;
    await clock.advance(1);
    gate.open();
    await clock.advance(5_000);
    expect((await engine.runs.get(run.id)).status).toBe('timed_out');
    expect(calls.count).toBe(1);
  });
});
