import { afterEach, describe, expect, it } from '@jest/globals';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, entryTypes, stopEngines, tool } from '../support/engine-harness.js';
import { FailingStore } from '../support/failing-store.js';
import { entriesOf, rowOf } from '../support/journal-of.js';
import { ManualClock } from '../support/manual-clock.js';
import { signal } from '../support/signal.js';
import { until } from '../support/until.js';

afterEach(stopEngines);

const toolThenText = () => [{ calls: [{ name: 'work' }] }, { text: 'done' }];

describe('shutting down', () => {
  it('OWN-3: lets the call in flight finish, commits its result, and hands the run over at the boundary (decision a-shutdown-parks-runs, B011)', async () => {
    const store = new MemoryRunStore();
    const release = signal<string>();
    const started = signal();
    const work = tool('work', () => (started.resolve(), release.promise), { recovery: 'manual' });
    const first = await engineOver(store, agent(scriptedModel(toolThenText()), [work]));
    const run = await first.runs.start({ agent: 'support', prompt: 'go' });
    await started.promise;
    const drained = first.worker.drain();
    expect(first.worker.status().state).toBe('draining');
    release.resolve('worked');
    await drained;

    expect(await rowOf(store, run.id)).toMatchObject({ status: 'pending', wake: { cause: 'handover' } });
    expect((await entryTypes(first, run.id)).slice(-2)).toEqual(['tool.completed', 'run.handed_over']);
    expect(await store.liveWorkers()).toEqual([]);
    expect(first.worker.status()).toMatchObject({ activeRuns: 0 });

    const next = scriptedModel(toolThenText(), { place: 'transcript' });
    const second = await engineOver(store, agent(next, [tool('work', () => 'again', { recovery: 'manual' })]));
    expect(await second.runs.result(run.id)).toMatchObject({ status: 'completed', output: 'done', attempt: 2 });
    expect(await entriesOf(store, run.id, 'run.resumed')).toMatchObject([
      { cause: 'handover', previousOwner: first.worker.workerId },
    ]);
    expect(next.requests.at(-1)?.messages.at(-1)).toMatchObject({ content: [{ output: 'worked' }] });
  });

  it('OWN-3: renews its lease while it drains, so that nobody takes the run over', async () => {
    const clock = new ManualClock();
    const store = new FailingStore(new MemoryRunStore({ clock: () => clock.now() }));
    const release = signal();
    const started = signal();
    const work = tool('work', () => (started.resolve(), release.promise));
    const options = { leaseMs: 6_000, shutdownTimeoutMs: 60_000 };
    const engine = await engineOver(store, agent(scriptedModel(toolThenText()), [work]), options, clock);
    const run = await engine.runs.start({ agent: 'support', prompt: 'go' });
    await started.promise;
    const drained = engine.worker.drain();
    const beats = store.count('heartbeat');
    await clock.advance(30_000);
    expect(store.count('heartbeat') - beats).toBe(15);
    expect(await store.liveWorkers()).toMatchObject([{ id: engine.worker.workerId }]);
    release.resolve();
    await clock.advance(0);
    await drained;
    expect((await rowOf(store, run.id)).status).toBe('pending');
  });

  it('JRN-2: the error of a tool that fails during the shutdown is recorded before the worker signs off (B013)', async () => {
    const store = new MemoryRunStore();
    const release = signal();
    const started = signal();
    const work = tool('work', () => (started.resolve(), release.promise));
    const engine = await engineOver(store, agent(scriptedModel(toolThenText()), [work]));
    const run = await engine.runs.start({ agent: 'support', prompt: 'go' });
    await started.promise;
    const drained = engine.worker.drain();
    release.reject(new Error('boom'));
    await drained;
    expect(await entriesOf(store, run.id, 'tool.failed')).toMatchObject([{ error: { message: 'boom' } }]);
    expect((await rowOf(store, run.id)).status).toBe('pending');
  });

  it('JRN-5a: calls that had not begun keep no intent and are begun by the next owner, whatever their policy', async () => {
    const store = new MemoryRunStore();
    const release = signal();
    const begun: string[] = [];
    const started = signal();
    const tools = ['a', 'b'].map((name) =>
      tool(name, () => (begun.push(name), started.resolve(), name === 'a' ? release.promise : 'b'), {
        recovery: 'manual',
      }),
    );
    const script = [{ calls: [{ name: 'a' }, { name: 'b' }] }, { text: 'done' }];
    const first = await engineOver(store, agent(scriptedModel(script), tools, { toolConcurrency: 1 }));
    const run = await first.runs.start({ agent: 'support', prompt: 'go' });
    await started.promise;
    const drained = first.worker.drain();
    release.resolve();
    await drained;
    expect(begun).toEqual(['a']);
    expect(await entriesOf(store, run.id, 'tool.started')).toHaveLength(1);

    const second = await engineOver(store, agent(scriptedModel(script, { place: 'transcript' }), tools));
    expect(await second.runs.result(run.id)).toMatchObject({ status: 'completed' });
    expect(begun).toEqual(['a', 'b']);
  });

  /** Ends as told when its signal is aborted. */
  function stoppable(started: () => void, end: 'returns' | 'throws') {
    return tool(
      'work',
      (_, { signal: stop }) =>
        new Promise((resolve, reject) => {
          started();
          stop.addEventListener('abort', () =>
            end === 'returns' ? resolve('half') : reject(new Error('told to stop')),
          );
        }),
      { recovery: 'manual' },
    );
  }

  it('OWN-3: aborts what is still in flight after shutdownTimeout, records what it then returns, and hands over', async () => {
    const store = new MemoryRunStore();
    const started = signal();
    const work = stoppable(started.resolve, 'returns');
    const engine = await engineOver(store, agent(scriptedModel(toolThenText()), [work]), { shutdownTimeoutMs: 20 });
    const run = await engine.runs.start({ agent: 'support', prompt: 'go' });
    await started.promise;
    await engine.worker.drain();
    expect(await entriesOf(store, run.id, 'tool.completed')).toMatchObject([{ output: 'half' }]);
    expect((await rowOf(store, run.id)).status).toBe('pending');
    expect(await store.liveWorkers()).toEqual([]);
  });

  it('JRN-5: a call that throws because it was told to stop has no result: the next owner decides by its policy', async () => {
    const store = new MemoryRunStore();
    const started = signal();
    const work = stoppable(started.resolve, 'throws');
    const engine = await engineOver(store, agent(scriptedModel(toolThenText()), [work]), { shutdownTimeoutMs: 20 });
    const run = await engine.runs.start({ agent: 'support', prompt: 'go' });
    await started.promise;
    await engine.worker.drain();
    expect((await entryTypes(engine, run.id)).slice(-2)).toEqual(['tool.started', 'run.handed_over']);
    const next = await engineOver(store, agent(scriptedModel([]), [work]));
    expect(await next.runs.result(run.id)).toMatchObject({
      status: 'needs_attention',
      attention: { reason: 'uncertain_outcome', operationKey: 'r1.m1.t0' },
    });
  });

  it('OWN-3: a model request that is cut by the shutdown is sent again by the next owner, and is no failure of the provider', async () => {
    const store = new MemoryRunStore();
    const hanging = scriptedModel([{ hang: true }]);
    const first = await engineOver(store, agent(hanging), { shutdownTimeoutMs: 20 });
    const run = await first.runs.start({ agent: 'support', prompt: 'go' });
    await hanging.requested(1);
    await first.worker.drain();
    expect(await entryTypes(first, run.id)).toEqual([
      'run.submitted',
      'run.started',
      'model.started',
      'run.handed_over',
    ]);
    const second = await engineOver(store, agent(scriptedModel([{ text: 'done' }])));
    expect(await second.runs.result(run.id)).toMatchObject({ status: 'completed', turn: 1 });
    expect(await entriesOf(store, run.id, 'model.started')).toMatchObject([{ attempt: 1 }, { attempt: 2 }]);
  });

  it('OWN-3: a call that does not react keeps its lease to expire: its run is not handed over while it can still act', async () => {
    const store = new MemoryRunStore();
    const started = signal();
    const release = signal();
    const work = tool('work', () => (started.resolve(), release.promise), { recovery: 'manual' });
    const engine = await engineOver(store, agent(scriptedModel(toolThenText()), [work]), { shutdownTimeoutMs: 10 });
    const run = await engine.runs.start({ agent: 'support', prompt: 'go' });
    await started.promise;
    await engine.worker.drain();
    expect(await rowOf(store, run.id)).toMatchObject({ status: 'running', owner: engine.worker.workerId });
    expect(await store.liveWorkers()).toMatchObject([{ id: engine.worker.workerId }]);
    expect(engine.logged.map(({ message }) => message)).toContainEqual(expect.stringContaining('calls in flight'));
    release.resolve();
    await until(async () => (await rowOf(store, run.id)).status === 'pending');
  });

  it('OWN-3: claims nothing while it drains; what is started meanwhile is committed for another process (B014)', async () => {
    const store = new MemoryRunStore();
    const started = signal();
    const release = signal();
    const model = scriptedModel(toolThenText());
    const child = signal<string>();
    const engine = await engineOver(
      store,
      agent(model, [
        tool('work', async () => {
          started.resolve();
          await release.promise;
          child.resolve((await engine.runs.start({ agent: 'support', prompt: 'child' })).id);
          return 'started a child';
        }),
      ]),
    );
    const run = await engine.runs.start({ agent: 'support', prompt: 'go' });
    await started.promise;
    const drained = engine.worker.drain();
    release.resolve();
    await drained;
    const childRow = await rowOf(store, await child.promise);
    expect(childRow).toMatchObject({ status: 'pending', attempt: 0 });
    expect((await rowOf(store, run.id)).status).toBe('pending');
    expect(await entriesOf(store, run.id, 'tool.completed')).toMatchObject([{ output: 'started a child' }]);
  });

  it('OWN-3: ends although a start is still waiting for the database', async () => {
    const store = new FailingStore(new MemoryRunStore());
    const engine = await engineOver(store, agent(scriptedModel([{ text: 'done' }])), { shutdownTimeoutMs: 50 });
    const gate = store.hold('create');
    const starting = engine.runs.start({ agent: 'support', prompt: 'go' });
    await gate.reached;
    const drained = engine.worker.drain();
    // The event loop still turns: a drain that spins would never let this go on.
    await new Promise((resolve) => setImmediate(resolve));
    gate.open();
    const run = await starting;
    await drained;
    expect((await rowOf(store, run.id)).status).toBe('pending');
  });

  it('OWN-3: begins nothing for a run whose claim comes home after the shutdown has begun', async () => {
    const store = new FailingStore(new MemoryRunStore());
    const model = scriptedModel([{ text: 'done' }]);
    const engine = await engineOver(store, agent(model));
    engine.worker.pause();
    const run = await engine.runs.start({ agent: 'support', prompt: 'go' });
    const gate = store.hold('transition', { after: true });
    engine.worker.resume();
    await gate.reached;
    const drained = engine.worker.drain();
    gate.open();
    await drained;
    expect(model.requests).toHaveLength(0);
    expect((await rowOf(store, run.id)).status).toBe('pending');
  });

  it('a second drain joins the first, and a process that is no worker has nothing to drain', async () => {
    const store = new MemoryRunStore();
    const engine = await engineOver(store, agent(scriptedModel([])));
    expect(engine.worker.drain()).toBe(engine.worker.drain());
    await engine.worker.drain();
    const reader = await engineOver(store, agent(scriptedModel([])), { worker: false });
    await reader.worker.drain();
    expect(reader.worker.status().state).toBe('off');
  });

  it('OWN-3: a worker that cannot sign off leaves its lease to expire, and still ends', async () => {
    const store = new FailingStore(new MemoryRunStore());
    const engine = await engineOver(store, agent(scriptedModel([])));
    store.fail('retireWorker');
    await engine.worker.drain();
    expect(engine.logged).toContainEqual(expect.objectContaining({ level: 'warn' }));
    expect(await store.liveWorkers()).toHaveLength(1);
  });

  it.each(['due', 'heartbeat', 'retireWorker'] as const)(
    'CFG-6: a database that does not answer %s holds the shutdown up no longer than the grace of a second (B027)',
    async (method) => {
      const clock = new ManualClock();
      const store = new FailingStore(new MemoryRunStore({ clock: () => clock.now() }));
      const options = { leaseMs: 60_000, pollMs: 1_000, shutdownTimeoutMs: 10_000 };
      const engine = await engineOver(store, agent(scriptedModel([])), options, clock);
      const gate = store.hold(method);
      await clock.advance(20_000);
      let isOver = false;
      const drained = engine.worker.drain().then(() => (isOver = true));
      await clock.advance(999);
      expect(isOver).toBe(false);
      await clock.advance(1);
      expect(isOver).toBe(true);
      gate.open();
      await drained;
    },
  );
});
