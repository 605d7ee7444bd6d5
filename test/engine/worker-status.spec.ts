import { afterEach, describe, expect, it } from '@jest/globals';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, stopEngines } from '../support/engine-harness.js';
import { FailingStore } from '../support/failing-store.js';
import { ManualClock } from '../support/manual-clock.js';
import { signal } from '../support/signal.js';

afterEach(stopEngines);

const start = { agent: 'support', prompt: 'hello' };
const settings = { leaseMs: 6_000, pollMs: 1_000, pollIdleMs: 5_000 };

async function worker(options = {}) {
  const clock = new ManualClock();
  const store = new FailingStore(new MemoryRunStore({ clock: () => clock.now() }));
  const release = signal();
  const model = scriptedModel([{ text: 'done', after: release.promise }], { place: 'transcript' });
  const engine = await engineOver(store, agent(model), { ...settings, ...options }, clock);
  return { clock, store, engine, release };
}

describe('the status of a worker', () => {
  it('OPS-1: is told from memory: the store is not asked', async () => {
    const { store, engine } = await worker();
    const before = [...store.calls.values()].reduce((sum, calls) => sum + calls, 0);
    for (let asked = 0; asked < 100; asked++) engine.worker.status();
    expect([...store.calls.values()].reduce((sum, calls) => sum + calls, 0)).toBe(before);
  });

  it('OPS-1: is ready with a lease, and says what it executes and when it last renewed', async () => {
    const { clock, engine, release } = await worker({ maxConcurrentRuns: 3, workerName: 'billing' });
    const run = await engine.runs.start(start);
    expect(engine.worker.status()).toEqual({
      state: 'ready',
      workerId: expect.stringMatching(/^billing-/),
      activeRuns: 1,
      waitingRuns: 0,
      maxConcurrentRuns: 3,
      lastHeartbeatAt: new Date(clock.now()),
    });
    await clock.advance(2_000);
    expect(engine.worker.status().lastHeartbeatAt).toEqual(new Date(clock.now()));
    release.resolve();
    await clock.advance(0);
    expect((await engine.runs.get(run.id)).status).toBe('completed');
    expect(engine.worker.status().activeRuns).toBe(0);
  });

  it('OPS-1: is degraded while the lease cannot be renewed, from the first failure on, and ready again after it', async () => {
    const { clock, store, engine } = await worker();
    store.fail('heartbeat', { times: 2 });
    await clock.advance(2_000);
    expect(engine.worker.status()).toMatchObject({
      state: 'degraded',
      reason: expect.stringContaining('STORE_UNAVAILABLE'),
    });
    await clock.advance(2_000);
    expect(engine.worker.status().state).toBe('ready');
    expect(engine.worker.status().reason).toBeUndefined();
  });

  it('OPS-1: is degraded from the start where the first renewal fails, claims nothing, and recovers', async () => {
    const clock = new ManualClock();
    const store = new FailingStore(new MemoryRunStore({ clock: () => clock.now() }));
    store.fail('heartbeat');
    const engine = await engineOver(store, agent(scriptedModel([{ text: 'done' }])), settings, clock);
    expect(engine.worker.status()).toMatchObject({ state: 'degraded' });
    expect(engine.worker.status().lastHeartbeatAt).toBeUndefined();
    const run = await engine.runs.start(start);
    expect(run.status).toBe('pending');
    await clock.advance(10_000);
    expect(engine.worker.status().state).toBe('ready');
    expect((await engine.runs.get(run.id)).status).toBe('completed');
  });

  it('CFG-4: is off in a process that is no worker: it starts, reads and answers, and claims nothing', async () => {
    const { clock, engine, store } = await worker({ worker: false });
    const run = await engine.runs.start(start);
    await clock.advance(60_000);
    expect(engine.worker.status()).toMatchObject({ state: 'off', activeRuns: 0 });
    expect((await engine.runs.get(run.id)).status).toBe('pending');
    expect([store.count('heartbeat'), store.count('due')]).toEqual([0, 0]);
    engine.worker.pause();
    engine.worker.resume();
    engine.worker.wake();
    await engine.worker.tick();
    expect(engine.worker.status().state).toBe('off');
  });

  it('pauses: what runs goes on, nothing new is claimed; resume looks at once', async () => {
    const { clock, engine, release } = await worker();
    const running = await engine.runs.start(start);
    engine.worker.pause();
    const waiting = await engine.runs.start(start);
    expect(waiting.status).toBe('pending');
    release.resolve();
    await clock.advance(10_000);
    expect((await engine.runs.get(running.id)).status).toBe('completed');
    expect((await engine.runs.get(waiting.id)).status).toBe('pending');
    expect(engine.worker.status().state).toBe('paused');
    engine.worker.resume();
    await clock.advance(0);
    expect((await engine.runs.get(waiting.id)).status).toBe('completed');
  });
});

describe('an idle worker', () => {
  it('asks at most one cheap question per poll interval, less and less often, whatever its concurrency', async () => {
    const { clock, store } = await worker({ maxConcurrentRuns: 100 });
    await clock.advance(0);
    const first = store.count('due');
    await clock.advance(60_000);
    const asked = store.count('due') - first;
    expect(asked).toBeGreaterThanOrEqual(10);
    expect(asked).toBeLessThanOrEqual(22);
    for (const method of ['transition', 'load', 'readJournal', 'overdue', 'append'] as const)
      expect(store.count(method)).toBe(0);
  });

  it('starts what begins in its own process without waiting for a poll', async () => {
    const { clock, store, engine, release } = await worker();
    release.resolve();
    await clock.advance(30_000);
    const polls = store.count('due');
    const run = await engine.runs.start(start);
    await clock.advance(0);
    expect((await engine.runs.get(run.id)).status).toBe('completed');
    expect(store.count('due') - polls).toBeLessThanOrEqual(1);
  });

  it('finds what other processes made claimable within a poll', async () => {
    const { clock, store, engine, release } = await worker();
    release.resolve();
    const outside = await engineOver(store.inner, agent(scriptedModel([])), { worker: false }, clock);
    await clock.advance(60_000);
    const run = await outside.runs.start(start);
    await clock.advance(settings.pollIdleMs);
    expect((await engine.runs.get(run.id)).status).toBe('completed');
  });
});
