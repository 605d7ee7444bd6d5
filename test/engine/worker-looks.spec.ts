import { afterEach, describe, expect, it } from '@jest/globals';
import type {
  DueAnswer,
  DueQuery,
  TransitionRequest,
  TransitionResult,
} from '../../lib/contracts/ports/run-store.port.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, stopEngines, type TestEngine } from '../support/engine-harness.js';
import { FailingStore } from '../support/failing-store.js';
import { ManualClock } from '../support/manual-clock.js';

afterEach(stopEngines);

const start = { agent: 'support', prompt: 'hello' };

/** Somebody else holds the row of every run that is to be claimed. */
class HeldRows extends FailingStore {
  isHeld = true;

  override transition<T>(request: TransitionRequest<T>): Promise<TransitionResult<T>> {
    return this.isHeld && request.skipLocked === true
      ? Promise.resolve({ outcome: 'busy' })
      : super.transition(request);
  }
}

/** A worker that never polls by itself in these tests, and another process that executes nothing. */
async function processes(slots: number): Promise<{ store: FailingStore; engine: TestEngine; other: TestEngine }> {
  const clock = new ManualClock();
  const memory = new MemoryRunStore({ clock: () => clock.now() });
  const store = new FailingStore(memory);
  const agents = (): ReturnType<typeof agent> =>
    agent(scriptedModel([{ text: 'done' }], { place: 'transcript' }), [], { sessionMode: 'serial' });
  const settings = { pollMs: 1_000_000, pollIdleMs: 1_000_000, leaseMs: 10_000_000, maxConcurrentRuns: slots };
  const engine = await engineOver(store, agents(), settings, clock);
  const other = await engineOver(memory, agents(), { ...settings, worker: false }, clock);
  await engine.worker.tick();
  return { store, engine, other };
}

/** What it answers is old when it arrives, as it is with a database server. */
class DistantStore extends FailingStore {
  override async due(query: DueQuery): Promise<DueAnswer> {
    const answer = await super.due(query);
    await new Promise((next) => setTimeout(next, 5));
    return answer;
  }
}

describe('when a run has ended', () => {
  it('OPS-1: its worker does not look for others, when the last look found the end of the line', async () => {
    const { store, engine } = await processes(4);
    const before = store.count('due');
    for (let n = 0; n < 5; n += 1) {
      const { id } = await engine.runs.start(start);
      expect((await engine.runs.result(id)).status).toBe('completed');
    }
    expect(store.count('due')).toBe(before);
  });

  it('OWN-1: its slot goes to the next one, when more waited than there were slots', async () => {
    const { engine, other } = await processes(2);
    const waiting = await Promise.all(Array.from({ length: 7 }, () => other.runs.start(start)));
    await engine.worker.tick();
    const ended = await Promise.all(waiting.map(({ id }) => engine.runs.result(id)));
    expect(ended.map(({ status }) => status)).toEqual(waiting.map(() => 'completed'));
  });

  it('OWN-1: its slot goes to one that found none when it was started here', async () => {
    const { engine } = await processes(1);
    const runs = await Promise.all(Array.from({ length: 5 }, () => engine.runs.start(start)));
    const ended = await Promise.all(runs.map(({ id }) => engine.runs.result(id)));
    expect(ended.map(({ status }) => status)).toEqual(runs.map(() => 'completed'));
  });

  it('SUB-4: the next run of its session is executed at once', async () => {
    const { engine } = await processes(4);
    const runs = [];
    for (let n = 0; n < 4; n += 1) runs.push(await engine.runs.start({ ...start, sessionId: 'talk', enqueue: true }));
    const ended = await Promise.all(runs.map(({ id }) => engine.runs.result(id)));
    expect(ended.map(({ status }) => status)).toEqual(runs.map(() => 'completed'));
  });

  it('OWN-1: a claim that failed is tried again', async () => {
    const { store, engine, other } = await processes(4);
    const { id } = await other.runs.start(start);
    store.fail('transition', { times: 1 });
    await engine.worker.tick();
    // Its own run ends, and the one that could not be claimed is found.
    await engine.runs.result((await engine.runs.start(start)).id);
    expect((await engine.runs.result(id)).status).toBe('completed');
  });
});

describe('when others were faster with all that a look has found', () => {
  it('OWN-1: it is repeated soon, then ever later, as rarely as the poll where the rows are held for long', async () => {
    const clock = new ManualClock();
    const memory = new MemoryRunStore({ clock: () => clock.now() });
    const store = new HeldRows(memory);
    const agents = agent(scriptedModel([{ text: 'done' }], { place: 'transcript' }));
    const settings = { pollMs: 1_000, pollIdleMs: 5_000, leaseMs: 10_000_000 };
    const other = await engineOver(memory, agents, { ...settings, worker: false }, clock);
    const { id } = await other.runs.start(start);
    const engine = await engineOver(store, agents, settings, clock);
    await engine.worker.tick();
    const looksWithin = async (ms: number): Promise<number> => {
      const before = store.count('due');
      await clock.advance(ms);
      return store.count('due') - before;
    };
    // The poll would come once in this time at most.
    expect(await looksWithin(200)).toBeGreaterThanOrEqual(2);
    await clock.advance(2_000);
    // Half of the poll's pause at least.
    expect(await looksWithin(10_000)).toBeLessThanOrEqual(20);
    store.isHeld = false;
    await clock.advance(1_000);
    expect((await engine.runs.result(id)).status).toBe('completed');
  });
});

describe('a worker with nothing to do', () => {
  it('OPS-2: looks as rarely as it may, whatever the jobs find', async () => {
    const clock = new ManualClock();
    const memory = new MemoryRunStore({ clock: () => clock.now() });
    const store = new FailingStore(memory);
    const agents = agent(scriptedModel([{ text: 'done' }], { place: 'transcript' }));
    const engine = await engineOver(store, agents, { pollMs: 1_000, pollIdleMs: 5_000, leaseMs: 10_000_000 }, clock);
    await clock.advance(30_000);
    const before = store.count('due');
    for (let n = 0; n < 12; n += 1) {
      await engine.recovery.runDueBackoffs();
      await engine.recovery.reconcile();
      await engine.recovery.expireInteractions();
      await clock.advance(5_000);
    }
    // One of the job and at most one of the poll in every five seconds.
    expect(store.count('due') - before).toBeLessThanOrEqual(25);
  });
});

describe('a queue that several workers look at', () => {
  it('OWN-1: is shared out: they do not all try the same runs (B119)', async () => {
    const memory = new MemoryRunStore();
    const reader = await engineOver(memory, agent(scriptedModel([])), { worker: false });
    const runs = await Promise.all(Array.from({ length: 400 }, () => reader.runs.start(start)));
    const stores = Array.from({ length: 8 }, () => new DistantStore(memory));
    let requests = 0;
    const model = scriptedModel([() => ((requests += 1), { text: 'done' })], { place: 'transcript' });
    const engines = await Promise.all(
      stores.map((store) => engineOver(store, agent(model), { maxConcurrentRuns: 5, pollMs: 5, pollIdleMs: 5 })),
    );
    const ended = await Promise.all(runs.map(({ id }) => reader.runs.result(id)));
    expect(ended.filter(({ status, attempt }) => status !== 'completed' || attempt !== 1)).toEqual([]);
    expect(requests).toBe(runs.length);
    // A try to claim begins by loading the run.
    const tries = stores.reduce((sum, store) => sum + store.count('load'), 0);
    expect(tries).toBeLessThan(3 * runs.length);
    expect(engines.map(({ worker }) => worker.status().state)).toEqual(engines.map(() => 'ready'));
  });

  it('OWN-1: is taken in its order by one worker alone', async () => {
    const { engine, other } = await processes(3);
    const runs = [];
    for (let n = 0; n < 9; n += 1) runs.push(await other.runs.start({ ...start, runId: `run-${n}` }));
    const begun: string[] = [];
    await engine.worker.tick();
    await Promise.all(runs.map(({ id }) => engine.runs.result(id)));
    for (const { runId, type } of engine.told) if (type === 'run.started') begun.push(runId);
    expect(begun).toEqual(runs.map(({ id }) => id));
  });
});
