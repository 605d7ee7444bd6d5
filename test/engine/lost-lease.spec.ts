import { afterEach, describe, expect, it } from '@jest/globals';
import type { ToolContext } from '../../lib/contracts/ports/tool-caller.port.js';
import type { Scripted } from '../../lib/model/scripted/script-step.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, stopEngines, tool } from '../support/engine-harness.js';
import { FailingStore } from '../support/failing-store.js';
import { entriesOf, journalOf, rowOf } from '../support/journal-of.js';
import { ManualClock } from '../support/manual-clock.js';
import { signal, type Signal } from '../support/signal.js';

afterEach(stopEngines);

const start = { agent: 'support', prompt: 'hello' };
const LEASE_MS = 6_000;
const settings = { leaseMs: LEASE_MS, pollMs: 1_000, pollIdleMs: 1_000 };
const script: Scripted[] = [{ calls: [{ name: 'work' }] }, { text: 'done' }];

/** Two processes on one database; the first works with a tool that ends when told to. */
async function two(recovery: 'safe' | 'manual' = 'safe') {
  const clock = new ManualClock();
  const store = new MemoryRunStore({ clock: () => clock.now() });
  const connection = new FailingStore(store);
  const entered = signal<ToolContext>();
  const release: Signal<unknown> = signal();
  const model = scriptedModel(script);
  const slow = tool('work', (_, context) => (entered.resolve(context), release.promise), { recovery });
  const first = await engineOver(connection, agent(model, [slow]), settings, clock);
  const run = await first.runs.start(start);
  const context = await entered.promise;
  const other = scriptedModel(script, { place: 'transcript' });
  const second = await engineOver(
    store,
    agent(other, [tool('work', () => 'of the second', { recovery })]),
    settings,
    clock,
  );
  return { clock, store, connection, first, second, model, other, context, release, id: run.id };
}

describe('a process that cannot renew its lease', () => {
  it.each(['fails', 'hangs'] as const)(
    'OWN-3: lets go before the lease ends when its renewal %s: signals aborted, nothing begun',
    async (how) => {
      const { clock, connection, first, context, model, release } = await two();
      if (how === 'fails') connection.fail('heartbeat', { times: Number.POSITIVE_INFINITY });
      else for (let beat = 0; beat < 50; beat++) connection.hold('heartbeat');
      await clock.advance((LEASE_MS * 5) / 6 - 1);
      expect(context.signal.aborted).toBe(false);
      await clock.advance(1);
      expect(context.signal.aborted).toBe(true);
      expect(first.worker.status()).toMatchObject({ state: 'degraded', reason: expect.any(String) });
      release.resolve('late');
      await clock.advance(0);
      expect(model.requests).toHaveLength(1);
      // Nor is anything new claimed.
      await first.runs.start({ ...start, runId: 'new' });
      expect((await rowOf(connection.inner, 'new')).status).toBe('pending');
    },
  );

  it('OWN-2: is fenced once another one has taken over: its result, its heartbeat and its failure change nothing (B002, B006)', async () => {
    const { clock, connection, store, first, second, release, id } = await two();
    connection.fail('heartbeat', { times: Number.POSITIVE_INFINITY });
    await clock.advance(LEASE_MS);
    await second.recovery.reconcile();
    await clock.advance(1_000);
    expect(await rowOf(store, id)).toMatchObject({ status: 'completed', attempt: 2, owner: second.worker.workerId });
    const before = [await journalOf(store, id), await rowOf(store, id)];
    release.reject(new Error('boom'));
    await clock.advance(1_000);
    connection.heal();
    await clock.advance(LEASE_MS * 2);
    expect([await journalOf(store, id), await rowOf(store, id)]).toEqual(before);
    expect(first.worker.status()).toMatchObject({ state: 'ready', activeRuns: 0 });
    expect(await entriesOf(store, id, 'tool.completed')).toMatchObject([{ output: 'of the second' }]);
  });

  it('OWN-2: a result that comes home after the takeover is discarded, and operators are told which', async () => {
    const { clock, connection, store, first, second, release, id } = await two();
    connection.fail('heartbeat', { times: Number.POSITIVE_INFINITY });
    await clock.advance(LEASE_MS);
    await second.recovery.reconcile();
    await clock.advance(1_000);
    release.resolve('of the first');
    await clock.advance(1_000);
    expect(JSON.stringify(await journalOf(store, id))).not.toContain('of the first');
    expect(first.logged).toContainEqual(
      expect.objectContaining({ level: 'warn', fields: expect.objectContaining({ runId: id }) }),
    );
    expect(JSON.stringify(first.logged)).not.toContain('of the first');
  });

  it('OWN-3: a result in hand is still recorded while nobody has taken over, and the run is handed over then (decision a-result-in-hand-is-offered-again)', async () => {
    const { clock, connection, store, first, release, id, second } = await two('manual');
    second.worker.pause();
    connection.fail('heartbeat', { times: Number.POSITIVE_INFINITY });
    await clock.advance(LEASE_MS + 1_000);
    release.resolve('worked');
    await clock.advance(1_000);
    expect(await entriesOf(store, id, 'tool.completed')).toMatchObject([{ output: 'worked' }]);
    expect(await rowOf(store, id)).toMatchObject({ status: 'pending', wake: { cause: 'handover' } });
    expect(first.worker.status().activeRuns).toBe(0);
    second.worker.resume();
    await clock.advance(1_000);
    expect((await rowOf(store, id)).status).toBe('completed');
  });

  it('OWN-3: is a worker again as soon as a renewal succeeds', async () => {
    const { clock, connection, first, release, second } = await two();
    second.worker.pause();
    connection.fail('heartbeat', { times: Number.POSITIVE_INFINITY });
    await clock.advance(LEASE_MS * 2);
    release.resolve('late');
    connection.heal();
    await clock.advance(2_000);
    expect(first.worker.status().state).toBe('ready');
  });
});

describe('a process that stood still (SIGSTOP)', () => {
  it('decision the-lease-is-checked-before-each-effect: begins no effect with a lease that ended meanwhile: what it had announced is taken back', async () => {
    const clock = new ManualClock();
    const store = new MemoryRunStore({ clock: () => clock.now() });
    const connection = new FailingStore(store);
    let effects = 0;
    const pay = tool('work', () => ++effects, { recovery: 'manual' });
    const first = await engineOver(connection, agent(scriptedModel(script), [pay]), settings, clock);
    // Stopped between the commit of the intent and the call.
    const gate = connection.hold('append', { after: true });
    const run = await first.runs.start(start);
    await gate.reached;
    expect((await journalOf(store, run.id)).at(-1)).toMatchObject({ type: 'tool.started' });
    clock.jump(LEASE_MS * 3);
    gate.open();
    await clock.advance(0);
    expect(effects).toBe(0);
    expect((await journalOf(store, run.id)).map(({ type }) => type)).toContain('tool.released');
    // Never begun: it runs later, whoever has the run, without a person being asked.
    await clock.advance(5_000);
    expect(await first.runs.get(run.id)).toMatchObject({ status: 'completed' });
    expect(effects).toBe(1);
  });

  it('decision the-lease-is-checked-before-each-effect: neither does it send a model request', async () => {
    const clock = new ManualClock();
    const store = new MemoryRunStore({ clock: () => clock.now() });
    const connection = new FailingStore(store);
    const model = scriptedModel([{ text: 'done' }]);
    const first = await engineOver(connection, agent(model), settings, clock);
    const gate = connection.hold('create', { after: true });
    const starting = first.runs.start(start);
    await gate.reached;
    clock.jump(LEASE_MS * 3);
    gate.open();
    const run = await starting;
    expect(model.requests).toHaveLength(0);
    await clock.advance(5_000);
    expect((await first.runs.get(run.id)).status).toBe('completed');
    expect(model.requests).toHaveLength(1);
  });

  it.each(['create', 'transition'] as const)(
    'I1, OWN-2: acts on nothing that it claimed by a %s under its lease before (simulation, seed 1006084)',
    async (door) => {
      const [clock, elsewhere] = [new ManualClock(), new ManualClock()];
      const store = new MemoryRunStore({ clock: () => elsewhere.now() });
      const connection = new FailingStore(store);
      const [late, model] = [scriptedModel([{ text: 'late' }]), scriptedModel([{ text: 'done' }])];
      const first = await engineOver(connection, agent(late), settings, clock);
      const second = await engineOver(store, agent(model), settings, elsewhere);
      const claim = connection.hold(door, { after: true });
      // A run of another process is claimed by a transition.
      if (door === 'transition') second.worker.pause();
      const starting = (door === 'create' ? first : second).runs.start({ ...start, runId: 'r' });
      if (door === 'transition') await starting.then(() => clock.advance(settings.pollMs));
      await claim.reached;
      second.worker.resume();
      // The first process stands still, and the second one takes over.
      await elsewhere.advance(LEASE_MS * 2);
      await second.recovery.reconcile();
      await elsewhere.advance(LEASE_MS);
      expect(await rowOf(store, 'r')).toMatchObject({ status: 'completed', attempt: 2 });
      clock.jump(LEASE_MS * 3);
      await clock.advance(0);
      expect(first.worker.status().state).toBe('ready');
      claim.open();
      await starting;
      await clock.advance(LEASE_MS);
      expect(late.requests).toHaveLength(0);
      expect(model.requests).toHaveLength(1);
      expect(first.worker.status()).toMatchObject({ state: 'ready', activeRuns: 0 });
    },
  );

  it('OWN-2: gives up cleanly when another one went on meanwhile (B025)', async () => {
    const { clock, connection, store, first, second, release, id } = await two();
    // The first process stands still; for the others time goes on.
    connection.fail('heartbeat', { times: Number.POSITIVE_INFINITY });
    clock.jump(LEASE_MS + 1);
    await second.recovery.reconcile();
    connection.heal();
    release.resolve('of the first');
    await clock.advance(3_000);
    expect(await rowOf(store, id)).toMatchObject({ status: 'completed' });
    expect(await entriesOf(store, id, 'tool.completed')).toHaveLength(1);
    expect(await entriesOf(store, id, 'run.completed')).toHaveLength(1);
    expect(first.worker.status().activeRuns).toBe(0);
  });
});

describe('a tool that never yields', () => {
  it('OWN-3: is named with the time its process stood still, and its result is recorded once (B025)', async () => {
    const clock = new ManualClock();
    const store = new MemoryRunStore({ clock: () => clock.now() });
    let busyMs = LEASE_MS * 3;
    const busy = tool('work', () => (clock.jump(busyMs), 'worked'), { recovery: 'manual' });
    const engine = await engineOver(
      store,
      agent(scriptedModel(script, { place: 'transcript' }), [busy]),
      settings,
      clock,
    );
    const named = () => engine.logged.filter(({ fields }) => fields.tool === 'work');
    const run = await engine.runs.start(start);
    await clock.advance(0);
    await clock.advance(5_000);
    expect(named()).toEqual([
      {
        level: 'warn',
        message: expect.stringContaining('stood still'),
        fields: { runId: run.id, operation: 'r1.m1.t0', tool: 'work', delayMs: LEASE_MS * 3 - LEASE_MS / 3 },
      },
    ]);
    expect(await engine.runs.get(run.id)).toMatchObject({ status: 'completed' });
    expect(await entriesOf(store, run.id, 'tool.completed')).toHaveLength(1);
    // What the lease can bear is nobody's business.
    busyMs = LEASE_MS / 3;
    const second = await engine.runs.start(start);
    await clock.advance(0);
    await clock.advance(5_000);
    expect((await engine.runs.get(second.id)).status).toBe('completed');
    expect(named()).toHaveLength(1);
  });
});

describe('intents that a lost lease left unwritten', () => {
  it('OWN-3: are not acted upon, and the run is not left to nobody', async () => {
    const clock = new ManualClock();
    const store = new MemoryRunStore({ clock: () => clock.now() });
    const connection = new FailingStore(store);
    const effects: string[] = [];
    const steps: Scripted[] = [{ calls: [{ name: 'one' }] }, { calls: [{ name: 'two' }] }, { text: 'done' }];
    const tools = ['one', 'two'].map((name) => tool(name, () => (effects.push(name), name), { recovery: 'manual' }));
    const model = scriptedModel(steps, { place: 'transcript' });
    const first = await engineOver(connection, agent(model, tools), settings, clock);
    // The database takes the result of the first reply's step no more, until the lease is over.
    const run = await first.runs.start(start);
    connection.fail('append', {
      times: Number.POSITIVE_INFINITY,
      when: ({ entries }: { entries: { type: string }[] }) => entries.some(({ type }) => type === 'tool.started'),
    });
    connection.fail('heartbeat', { times: Number.POSITIVE_INFINITY });
    await clock.advance(LEASE_MS * 2);
    expect(effects).toEqual([]);
    connection.heal();
    await clock.advance(LEASE_MS * 2);
    expect(await first.runs.get(run.id)).toMatchObject({ status: 'completed', turn: 3 });
    expect(effects).toEqual(['one', 'two']);
  });
});
