import { afterEach, describe, expect, it } from '@jest/globals';
import type { AgentDefinition } from '../../lib/contracts/agent-definition.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, stopEngines, tool, type TestEngine } from '../support/engine-harness.js';
import { entriesOf, journalOf, rowOf } from '../support/journal-of.js';
import { FailingStore } from '../support/failing-store.js';
import { ManualClock } from '../support/manual-clock.js';

afterEach(stopEngines);

const start = { agent: 'support', prompt: 'hello' };
const settings = { leaseMs: 6_000, pollMs: 1_000, pollIdleMs: 1_000, unknownVersionAfterMs: 60_000 };

/** A run submitted under an old definition, and a process that has another one. */
async function deployed(before: Partial<AgentDefinition>, after: Partial<AgentDefinition>) {
  const clock = new ManualClock();
  const store = new MemoryRunStore({ clock: () => clock.now() });
  let executed = 0;
  const work = tool('work', () => (++executed, 'worked'), { recovery: 'manual' });
  const script = [{ calls: [{ name: 'work' }] }, { text: 'done' }];
  const process = (definition: Partial<AgentDefinition>) => {
    const model = scriptedModel(script, { place: 'transcript' });
    return { model, definition: agent(model, [work], definition) };
  };
  const old = process(before);
  const first = await engineOver(store, old.definition, { ...settings, worker: false }, clock);
  const run = await first.runs.start(start);
  const fresh = process(after);
  const second = await engineOver(store, fresh.definition, settings, clock);
  const restore = (slots = 10) => engineOver(store, old.definition, { ...settings, maxConcurrentRuns: slots }, clock);
  return { clock, store, id: run.id, engine: second, model: fresh.model, restore, executed: () => executed };
}

async function sweep(engine: TestEngine, clock: ManualClock): Promise<void> {
  await engine.recovery.reconcile();
  await clock.advance(0);
}

describe('a run whose version nobody has', () => {
  it.each([
    ['another version', { version: '2', hash: 'hash-2' }, 'support@2#hash-2'],
    ['another definition under the same version', { hash: 'hash-2' }, 'support@1#hash-2'],
    ['another agent', { name: 'other' }, 'nothing of this agent'],
  ])(
    'JRN-7: %s is registered → attention, naming wanted and offered, with no model and no tool called',
    async (_, after, offered) => {
      const { clock, store, id, engine, model, executed } = await deployed({}, after);
      await clock.advance(59_000);
      await sweep(engine, clock);
      expect((await rowOf(store, id)).status).toBe('pending');
      await clock.advance(2_000);
      await sweep(engine, clock);
      expect(await engine.runs.get(id)).toMatchObject({
        status: 'needs_attention',
        attention: { reason: 'version_mismatch', detail: expect.stringContaining('support@1#hash-1') },
        attempt: 0,
      });
      expect((await engine.runs.get(id)).attention?.detail).toContain(offered);
      expect(model.requests).toEqual([]);
      expect(executed()).toBe(0);
    },
  );

  it('JRN-7a: the first worker after a long outage waits for the others before it strands what they would execute', async () => {
    const clock = new ManualClock();
    const store = new FailingStore(new MemoryRunStore({ clock: () => clock.now() }));
    const api = await engineOver(store, agent(scriptedModel()), { ...settings, worker: false }, clock);
    const { id } = await api.runs.start(start);
    await clock.advance(3_600_000);
    const first = await engineOver(
      store,
      agent(scriptedModel(), [], { version: '2', hash: 'hash-2' }),
      settings,
      clock,
    );
    await sweep(first, clock);
    await clock.advance(30_000);
    await sweep(first, clock);
    expect((await rowOf(store, id)).status).toBe('pending');
    // The database goes away for longer than a lease: all begin anew.
    store.fail('heartbeat', { times: Number.POSITIVE_INFINITY });
    await clock.advance(40_000);
    store.heal();
    await clock.advance(2_000);
    expect(first.worker.status().state).toBe('ready');
    await sweep(first, clock);
    expect((await rowOf(store, id)).status).toBe('pending');
    await clock.advance(61_000);
    await sweep(first, clock);
    expect(await rowOf(store, id)).toMatchObject({
      status: 'needs_attention',
      attention: { reason: 'version_mismatch' },
    });
  });

  it('JRN-7: nothing is lost: with the version back, resume and retry let it go on', async () => {
    for (const verb of ['resume', 'retry'] as const) {
      const { clock, id, engine, restore, executed } = await deployed({}, { version: '2', hash: 'hash-2' });
      await clock.advance(61_000);
      await sweep(engine, clock);
      await expect(engine.runs[verb](id)).rejects.toMatchObject({
        code: 'VERSION_UNAVAILABLE',
        details: { wanted: 'support@1#hash-1', offered: ['support@2#hash-2'] },
      });
      expect((await engine.runs.get(id)).attempt).toBe(0);
      const restored = await restore();
      await engine.runs[verb](id);
      await clock.advance(2_000);
      expect(await restored.runs.get(id)).toMatchObject({ status: 'completed', version: '1' });
      expect(executed()).toBe(1);
    }
  });

  it('JRN-7a: as long as some live worker offers it, it is left for that one', async () => {
    const { clock, store, id, engine, restore } = await deployed({}, { version: '2', hash: 'hash-2' });
    await restore(0);
    await clock.advance(120_000);
    await sweep(engine, clock);
    expect((await rowOf(store, id)).status).toBe('pending');
  });

  it('JRN-7: an answer to a run of a version that is gone is not lost: the run says what it needs (B031)', async () => {
    const clock = new ManualClock();
    const store = new MemoryRunStore({ clock: () => clock.now() });
    let executed = 0;
    const gated = tool('gated', () => ++executed, { approval: 'rule', asks: () => ({}), recovery: 'manual' });
    const script = [{ calls: [{ name: 'gated' }] }, { text: 'done' }];
    const version = (over: Partial<AgentDefinition>) =>
      agent(scriptedModel(script, { place: 'transcript' }), [gated], over);
    const first = await engineOver(store, version({}), settings, clock);
    const run = await first.runs.start(start);
    await clock.advance(0);
    const [asked] = (await first.runs.get(run.id)).interactions;
    await first.stop();
    const second = await engineOver(store, version({ version: '2', hash: 'hash-2' }), settings, clock);
    await second.runs.respond(run.id, asked?.id as string, { decision: 'approve', by: 'ann' });
    await clock.advance(61_000);
    await sweep(second, clock);
    expect(await second.runs.get(run.id)).toMatchObject({
      status: 'needs_attention',
      attention: { reason: 'version_mismatch' },
    });
    expect(executed).toBe(0);
    const restored = await engineOver(store, version({}), settings, clock);
    await second.runs.resume(run.id);
    await clock.advance(2_000);
    expect((await restored.runs.get(run.id)).status).toBe('completed');
    expect(executed).toBe(1);
  });

  it('JRN-7: versions live side by side: each run is executed under its own', async () => {
    const store = new MemoryRunStore();
    const answering = (version: string) =>
      agent(scriptedModel([{ text: `v${version}` }], { place: 'transcript' }), [], { version, hash: `h-${version}` });
    const engine = await engineOver(store, [answering('1'), answering('2')]);
    expect((await engine.runs.startAndWait({ ...start, version: '1' })).output).toBe('v1');
    expect((await engine.runs.startAndWait(start)).output).toBe('v2');
  });
});

describe('a changed definition that is accepted', () => {
  it("JRN-7: definitionChange 'accept' continues, and journals both hashes", async () => {
    const { clock, store, id, engine, executed } = await deployed({}, { hash: 'hash-2', definitionChange: 'accept' });
    await clock.advance(2_000);
    expect(await engine.runs.get(id)).toMatchObject({ status: 'completed', definitionHash: 'hash-2' });
    const [started] = await entriesOf(store, id, 'run.started');
    expect(started?.definitionChange).toEqual({ from: 'hash-1', to: 'hash-2' });
    expect(executed()).toBe(1);
  });

  it('JRN-7a: an unanswered model call is made again under the new definition, and is no drift', async () => {
    const store = new MemoryRunStore();
    const hanging = scriptedModel([{ hang: true }]);
    const first = await engineOver(store, agent(hanging, [], { instructions: 'Old.' }), { shutdownTimeoutMs: 1 });
    const run = await first.runs.start(start);
    await hanging.requested(1);
    await first.stop();
    const model = scriptedModel([{ text: 'done' }], { name: 'another-model' });
    const second = await engineOver(
      store,
      agent(model, [], { instructions: 'New.', hash: 'hash-2', definitionChange: 'accept' }),
    );
    expect((await second.runs.result(run.id)).status).toBe('completed');
    expect(model.requests[0]?.instructions).toBe('New.');
    expect(await entriesOf(store, run.id, 'model.started')).toMatchObject([
      { model: 'scripted' },
      { model: 'another-model' },
    ]);
  });

  it('I8: what was frozen with the run stays: limits and retry policy of its submission', async () => {
    const { clock, id, engine } = await deployed(
      { maxTurns: 1 },
      { hash: 'hash-2', definitionChange: 'accept', maxTurns: 50 },
    );
    await clock.advance(2_000);
    expect(await engine.runs.get(id)).toMatchObject({ status: 'failed', error: { code: 'MAX_TURNS_EXCEEDED' } });
  });
});

describe('the sweeps', () => {
  it('never throw: a store that does not answer is logged, and the next sweep goes on', async () => {
    const store = new FailingStore(new MemoryRunStore());
    const engine = await engineOver(store, agent(scriptedModel([])));
    for (const method of ['liveWorkers', 'overdue', 'due'] as const) store.fail(method);
    await engine.recovery.reconcile();
    await engine.recovery.runDueBackoffs();
    await engine.recovery.expireInteractions();
    await engine.recovery.reconcile();
    expect(engine.logged.every(({ level }) => level === 'warn')).toBe(true);
  });

  it('B009: a run that was deleted after it was found is neither moved nor made again', async () => {
    const store = new FailingStore(new MemoryRunStore());
    const nothing = {
      now: 0,
      expired: ['gone'],
      unoffered: ['gone'],
      pastDeadline: ['gone'],
      answered: ['gone'],
      expiredInteractions: ['gone'],
    };
    store.overdue = () => Promise.resolve(nothing);
    const engine = await engineOver(store, agent(scriptedModel([])));
    await engine.recovery.reconcile();
    await engine.recovery.expireInteractions();
    await expect(engine.runs.get('gone')).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
    expect(engine.told).toEqual([]);
    expect(engine.logged.filter(({ level }) => level === 'error')).toEqual([]);
  });

  it('B138: do not overlap with themselves: a second call joins the first', async () => {
    const store = new FailingStore(new MemoryRunStore());
    const engine = await engineOver(store, agent(scriptedModel([])));
    const gate = store.hold('overdue');
    const first = engine.recovery.reconcile();
    await gate.reached;
    const second = engine.recovery.reconcile();
    expect(second).toBe(first);
    gate.open();
    await first;
    expect(store.count('overdue')).toBe(1);
  });

  it('B120: one run that cannot be decided now does not keep the others from it, and is looked at again', async () => {
    const clock = new ManualClock();
    const store = new FailingStore(new MemoryRunStore({ clock: () => clock.now() }));
    const engine = await engineOver(store, agent(scriptedModel([]), [], {}), settings, clock);
    engine.worker.pause();
    const deadline = new Date(clock.now() + 1_000);
    const runs = await Promise.all([1, 2, 3].map(() => engine.runs.start({ ...start, deadline })));
    await clock.advance(1_000);
    store.fail('transition');
    await engine.recovery.reconcile();
    const statuses = async () =>
      (await Promise.all(runs.map(({ id }) => rowOf(store, id)))).map(({ status }) => status);
    expect((await statuses()).filter((status) => status === 'timed_out')).toHaveLength(2);
    await engine.recovery.reconcile();
    expect(await statuses()).toEqual(['timed_out', 'timed_out', 'timed_out']);
    expect((await journalOf(store, runs[0]?.id as string)).filter(({ type }) => type === 'run.timed_out')).toHaveLength(
      1,
    );
  });
});
