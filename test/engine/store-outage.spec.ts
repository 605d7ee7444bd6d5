import { afterEach, describe, expect, it } from '@jest/globals';
import type { Scripted } from '../../lib/model/scripted/script-step.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, entryTypes, stopEngines, tool } from '../support/engine-harness.js';
import { FailingStore, type StoreMethod } from '../support/failing-store.js';
import { entriesOf, journalOf, rowOf } from '../support/journal-of.js';
import { ManualClock } from '../support/manual-clock.js';
import { signal } from '../support/signal.js';

afterEach(stopEngines);

const start = { agent: 'support', prompt: 'hello' };
const script: Scripted[] = [
  { calls: [{ name: 'pay', args: { n: 1 } }, { name: 'look' }] },
  { calls: [{ name: 'pay', args: { n: 2 } }] },
  { text: 'done' },
];

async function over() {
  const clock = new ManualClock();
  const store = new FailingStore(new MemoryRunStore({ clock: () => clock.now() }));
  const paid: unknown[] = [];
  const model = scriptedModel(script, { place: 'transcript' });
  const definition = agent(model, [
    tool('pay', ({ n }) => (paid.push(n), `paid ${n}`), { recovery: 'manual' }),
    tool('look', () => 'seen'),
  ]);
  const engine = await engineOver(store, definition, { pollMs: 1_000, pollIdleMs: 1_000, leaseMs: 60_000 }, clock);
  return { clock, store, engine, model, paid };
}

/** Nothing lost, nothing twice. */
async function expectWhole(
  { store, engine, model, paid }: Awaited<ReturnType<typeof over>>,
  id: string,
): Promise<void> {
  expect(await engine.runs.get(id)).toMatchObject({
    status: 'completed',
    output: 'done',
    turn: 3,
    usage: { totalTokens: 45 },
  });
  expect(paid).toEqual([1, 2]);
  expect(model.requests).toHaveLength(3);
  expect(engine.worker.status()).toMatchObject({ state: 'ready', activeRuns: 0 });
  const entries = await journalOf(store.inner, id);
  expect(entries.map(({ sequence }) => sequence)).toEqual(entries.map((_, index) => index + 1));
  expect((await entriesOf(store.inner, id, 'tool.completed')).map(({ key }) => key)).toEqual([
    'r1.m1.t0',
    'r1.m1.t1',
    'r1.m2.t0',
  ]);
  expect(await entriesOf(store.inner, id, 'run.failed')).toEqual([]);
}

describe('a store that does not answer', () => {
  const outages: [method: StoreMethod, lost: boolean][] = [
    ['append', false],
    ['append', true],
    ['transition', false],
    ['transition', true],
    ['due', false],
    ['heartbeat', false],
    ['heartbeat', true],
  ];

  it.each(outages)(
    'I10: an outage of %s (answer lost: %s) at any moment of a run costs nothing but time',
    async (method, lost) => {
      for (let call = 1; call <= 8; call++) {
        for (const times of [1, 5]) {
          const all = await over();
          let calls = 0;
          all.store.fail(method, { times, lost, when: () => ++calls >= call });
          const run = await all.engine.runs.start(start);
          await all.clock.advance(58_000);
          await expectWhole(all, run.id);
          await all.engine.stop();
        }
      }
    },
  );

  it('I10: a result in hand is offered until it lands; the run takes no new step meanwhile (decision a-result-in-hand-is-offered-again)', async () => {
    const all = await over();
    const { clock, store, engine, model } = all;
    const run = await engine.runs.start(start);
    store.fail('append', { times: Number.POSITIVE_INFINITY });
    await clock.advance(30_000);
    expect(model.requests).toHaveLength(1);
    expect((await rowOf(store.inner, run.id)).status).toBe('running');
    expect(engine.worker.status().activeRuns).toBe(1);
    store.heal();
    await clock.advance(5_000);
    await expectWhole(all, run.id);
    expect(await rowOf(store.inner, run.id)).toMatchObject({ attempt: 1 });
  });

  it('I10: a finished manual tool does not need a person because the database restarted (decision a-result-in-hand-is-offered-again)', async () => {
    const all = await over();
    const { clock, store, engine } = all;
    store.fail('append', {
      times: 4,
      when: ({ entries }: { entries: { type: string }[] }) => entries.some(({ type }) => type === 'tool.completed'),
    });
    const run = await engine.runs.start(start);
    await clock.advance(10_000);
    await expectWhole(all, run.id);
  });

  it("I10: this process's own sweep leaves a run alone whose result it still brings home", async () => {
    const all = await over();
    const { clock, store, engine } = all;
    const run = await engine.runs.start(start);
    store.fail('append', { times: Number.POSITIVE_INFINITY });
    store.fail('heartbeat', { times: Number.POSITIVE_INFINITY });
    await clock.advance(120_000);
    await engine.recovery.reconcile();
    await clock.advance(2_000);
    expect(await rowOf(store.inner, run.id)).toMatchObject({ status: 'running', attempt: 1 });
    store.heal();
    await clock.advance(10_000);
    const ended = await engine.runs.get(run.id);
    expect(ended.status).toBe('completed');
    expect(all.paid).toEqual([1, 2]);
  });

  it('JRN-1: if the commit of an intent fails, the call is not made', async () => {
    const { clock, store, engine, paid } = await over();
    store.fail('append', {
      times: 3,
      when: ({ entries }: { entries: { type: string }[] }) => entries.some(({ type }) => type === 'tool.started'),
    });
    await engine.runs.start(start);
    await clock.advance(0);
    expect(paid).toEqual([]);
    await clock.advance(10_000);
    expect(paid).toEqual([1, 2]);
  });

  it('I2: nobody is told before the commit', async () => {
    const { clock, store, engine } = await over();
    const run = await engine.runs.start(start);
    const gate = store.hold('append');
    await clock.advance(0);
    await gate.reached;
    expect(engine.told.map(({ type }) => type)).toEqual(['run.submitted', 'run.started', 'model.started']);
    expect(await entryTypes(engine, run.id)).toEqual(['run.submitted', 'run.started', 'model.started']);
    gate.open();
    await clock.advance(0);
    expect(engine.told.length).toBeGreaterThan(3);
  });

  it('STO-4: the worker claims nothing meanwhile, says that it is degraded, and carries on when it is back', async () => {
    const { clock, store, engine } = await over();
    engine.worker.pause();
    const run = await engine.runs.start(start);
    store.fail('due', { times: Number.POSITIVE_INFINITY });
    engine.worker.resume();
    await clock.advance(10_000);
    expect(engine.worker.status()).toMatchObject({
      state: 'degraded',
      reason: expect.stringContaining('STORE_UNAVAILABLE'),
    });
    expect((await rowOf(store.inner, run.id)).status).toBe('pending');
    store.heal();
    await clock.advance(5_000);
    expect(engine.worker.status().state).toBe('ready');
    expect((await engine.runs.get(run.id)).status).toBe('completed');
  });

  it('I10: an error that cannot be recorded for now never reaches the model', async () => {
    const all = await over();
    const { clock, store, engine, model } = all;
    store.fail('append', { times: 6 });
    const run = await engine.runs.start(start);
    await clock.advance(20_000);
    await expectWhole(all, run.id);
    expect(JSON.stringify(model.requests)).not.toContain('database');
  });

  it('callers are told that it is their store, and that they may try again', async () => {
    const { store, engine } = await over();
    for (const method of ['load', 'snapshot', 'list', 'create', 'transition', 'readJournal', 'metrics'] as const)
      store.fail(method, { times: 5 });
    const unavailable = { code: 'STORE_UNAVAILABLE', retryable: true };
    await expect(engine.runs.get('r')).rejects.toMatchObject(unavailable);
    await expect(engine.runs.list()).rejects.toMatchObject(unavailable);
    await expect(engine.runs.start(start)).rejects.toMatchObject(unavailable);
    await expect(engine.runs.cancel('r')).rejects.toMatchObject(unavailable);
    await expect(engine.runs.events('r')).rejects.toMatchObject(unavailable);
    await expect(engine.metrics.read()).rejects.toMatchObject(unavailable);
  });

  it('I10: a tool whose own call to this package finds no database is not asked for its opinion: the run pauses and goes on', async () => {
    const clock = new ManualClock();
    const store = new FailingStore(new MemoryRunStore({ clock: () => clock.now() }));
    const asked = signal();
    let entered = 0;
    const engine = await engineOver(
      store,
      agent(
        scriptedModel([{ calls: [{ name: 'spawn' }] }, { text: 'done' }], { place: 'transcript' }),
        [
          tool('spawn', async () => {
            entered += 1;
            asked.resolve();
            return (await engine.runs.list()).runs.length;
          }),
        ],
        { modelRetry: { maxAttempts: 3, initialDelayMs: 1_000, maxDelayMs: 30_000, maxRetryAfterMs: 1 } },
      ),
      { pollMs: 1_000, pollIdleMs: 1_000 },
      clock,
    );
    store.fail('list', { times: 3 });
    const run = await engine.runs.start(start);
    await asked.promise;
    await clock.advance(500);
    // No spinning: one try per pause.
    expect(entered).toBe(1);
    await clock.advance(30_000);
    expect(await engine.runs.get(run.id)).toMatchObject({ status: 'completed' });
    expect(entered).toBe(4);
  });
});

describe('a claim whose answer is lost', () => {
  it.each([
    ['the claim', 'transition'],
    ['the start', 'create'],
  ] as const)(
    'I11: %s made this worker the owner of a run nobody executes: it is put back and executed',
    async (_, method) => {
      const { clock, store, engine, model } = await over();
      if (method === 'transition') {
        engine.worker.pause();
        await engine.runs.start({ ...start, runId: 'r' });
        store.fail('transition', { lost: true });
        engine.worker.resume();
      } else {
        store.fail('create', { lost: true });
        await engine.runs.start({ ...start, runId: 'r' }).catch(() => undefined);
      }
      await clock.advance(0);
      expect(await rowOf(store.inner, 'r')).toMatchObject({ owner: engine.worker.workerId });
      await clock.advance(10_000);
      expect(await engine.runs.get('r')).toMatchObject({ status: 'completed' });
      expect(model.requests).toHaveLength(3);
      const [back, ...more] = await entriesOf(store.inner, 'r', 'run.handed_over');
      expect(more).toEqual([]);
      expect(engine.told).toContainEqual(
        expect.objectContaining({ runId: 'r', type: 'run.handed_over', sequence: back?.sequence }),
      );
      // What was committed with the lost answer is told to nobody; its sequences are missing, and none is told twice.
      const told = engine.told.map(({ sequence }) => sequence);
      expect(told).toEqual([...new Set(told)].sort((a, b) => a - b));
    },
  );

  it('I11: the doubt is kept until the store can be asked', async () => {
    const { clock, store, engine } = await over();
    store.fail('create', { lost: true });
    store.fail('transition', { times: 3 });
    await engine.runs.start({ ...start, runId: 'r' }).catch(() => undefined);
    await clock.advance(30_000);
    expect((await engine.runs.get('r')).status).toBe('completed');
  });

  it('I11: a claim that was refused leaves nothing to doubt', async () => {
    const { clock, store, engine } = await over();
    engine.worker.pause();
    await engine.runs.start({ ...start, runId: 'r' });
    store.fail('transition');
    engine.worker.resume();
    await clock.advance(10_000);
    expect(await engine.runs.get('r')).toMatchObject({ status: 'completed', attempt: 1 });
    expect(await entriesOf(store.inner, 'r', 'run.handed_over')).toEqual([]);
  });

  it('I11: reading the journal after the claim may fail as well', async () => {
    const clock = new ManualClock();
    const inner = new MemoryRunStore({ clock: () => clock.now() });
    const store = new FailingStore(inner);
    const engine = await engineOver(
      store,
      agent(scriptedModel([{ text: 'done' }], { place: 'transcript' }), [], { sessionMode: 'parallel' }),
      { pollMs: 1_000, pollIdleMs: 1_000 },
      clock,
    );
    await engine.runs.start({ ...start, sessionId: 's' });
    await clock.advance(0);
    engine.worker.pause();
    await engine.runs.start({ ...start, sessionId: 's', runId: 'r' });
    // The history is fixed by the claim itself and has to be read after it: the third read of that turn.
    let reads = 0;
    store.fail('readJournal', { when: () => ++reads === 3 });
    engine.worker.resume();
    await clock.advance(10_000);
    expect(await engine.runs.get('r')).toMatchObject({ status: 'completed' });
  });
});
