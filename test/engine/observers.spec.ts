import { afterEach, describe, expect, it } from '@jest/globals';
import type { LifecycleEvent, RunObserver } from '../../lib/contracts/ports/host.port.js';
import type { Scripted } from '../../lib/model/scripted/script-step.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { mortalEngine } from '../support/crash.js';
import { agent, engineOver, stopEngines, tool, type TestEngine } from '../support/engine-harness.js';
import { FailingStore } from '../support/failing-store.js';
import { journalOf } from '../support/journal-of.js';
import { signal } from '../support/signal.js';
import { until } from '../support/until.js';

afterEach(stopEngines);

const start = { agent: 'support', prompt: 'hello' };
const script: Scripted[] = [{ calls: [{ name: 'work' }, { name: 'work' }] }, { text: 'done' }];

async function observed(...observers: RunObserver[]): Promise<TestEngine> {
  const model = scriptedModel(script, { place: 'transcript' });
  const engine = await engineOver(new MemoryRunStore(), agent(model, [tool('work', () => 'worked')]));
  (engine.ports.observers as RunObserver[]).unshift(...observers);
  return engine;
}

/** Sequences told of one run. */
const sequences = (events: readonly LifecycleEvent[], runId: string) =>
  events.filter((event) => event.runId === runId).map(({ sequence }) => sequence);

describe('observers', () => {
  it('OPS-4: are told of every entry once it is committed, in order per run', async () => {
    const engine = await observed();
    const runs = await Promise.all(Array.from({ length: 5 }, () => engine.runs.startAndWait(start)));
    for (const run of runs) {
      const entries = await journalOf(engine.ports.store, run.id);
      expect(sequences(engine.told, run.id)).toEqual(entries.map(({ sequence }) => sequence));
      expect(engine.told.filter(({ runId }) => runId === run.id).map(({ type }) => type)).toEqual(
        entries.map(({ type }) => type),
      );
    }
    expect(engine.told[0]).toMatchObject({ agent: 'support', version: '1', sessionId: null, at: expect.any(Date) });
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('observer broke');
      },
    ],
    ['rejects', () => Promise.reject(new Error('observer broke'))],
    ['rejects with nothing', () => Promise.reject(undefined)],
    [
      'returns a thenable that rejects',
      () =>
        ({
          then: (_: unknown, reject: (error: unknown) => void) => reject(new Error('observer broke')),
        }) as unknown as Promise<void>,
    ],
  ])('OPS-4: one that %s is logged and changes nothing, for the run and for the others', async (_, onEvent) => {
    const unhandled: unknown[] = [];
    const onUnhandled = (error: unknown) => unhandled.push(error);
    process.on('unhandledRejection', onUnhandled);
    try {
      const engine = await observed({ onEvent });
      const run = await engine.runs.startAndWait(start);
      expect(run.status).toBe('completed');
      await until(() => sequences(engine.told, run.id).length === run.sequence);
      await until(() => engine.logged.length === run.sequence);
      expect(engine.logged[0]).toMatchObject({ level: 'warn', fields: { runId: run.id } });
      await new Promise((resolve) => setTimeout(resolve, 5));
      expect(unhandled).toEqual([]);
    } finally {
      process.off('unhandledRejection', onUnhandled);
    }
  });

  it('OPS-4: a slow one delays neither the run nor other runs, and still gets everything in order', async () => {
    const gate = signal();
    const slow: LifecycleEvent[] = [];
    const engine = await observed({
      onEvent: async (event) => {
        await gate.promise;
        slow.push(event);
      },
    });
    const [first, second] = await Promise.all([engine.runs.startAndWait(start), engine.runs.startAndWait(start)]);
    expect([first.status, second.status]).toEqual(['completed', 'completed']);
    expect(slow).toEqual([]);
    gate.resolve();
    await until(() => slow.length === first.sequence + second.sequence);
    for (const run of [first, second])
      expect(sequences(slow, run.id)).toEqual(Array.from({ length: run.sequence }, (_, index) => index + 1));
  });

  it('OPS-4: are told of what callers do as well, in the process that did it', async () => {
    const engine = await observed();
    engine.worker.pause();
    const head = await engine.runs.start({ ...start, sessionId: 's' });
    const next = await engine.runs.start({ ...start, sessionId: 's', enqueue: true });
    await engine.runs.cancel(head.id, { by: 'ann' });
    expect(engine.told.map(({ runId, type }) => [runId, type])).toEqual(
      expect.arrayContaining([
        [head.id, 'run.cancelled'],
        [next.id, 'run.dequeued'],
      ]),
    );
  });

  it('OPS-4: an entry whose commit was answered late is told all the same, once', async () => {
    const store = new FailingStore(new MemoryRunStore());
    const model = scriptedModel(script, { place: 'transcript' });
    const engine = await engineOver(store, agent(model, [tool('work', () => 'worked')]));
    store.fail('append', { lost: true });
    store.fail('transition', { lost: true });
    const run = await engine.runs.startAndWait(start);
    await until(() => engine.told.at(-1)?.type === 'run.completed');
    expect(sequences(engine.told, run.id)).toEqual(Array.from({ length: run.sequence }, (_, index) => index + 1));
  });

  it('OPS-4: a run that changes its process is told by each of them from where it had it', async () => {
    const store = new MemoryRunStore();
    const hanging = scriptedModel([{ hang: 'deaf' }]);
    const first = await mortalEngine(store, agent(hanging));
    const run = await first.runs.start(start);
    await hanging.requested(1);
    await first.crash();
    const second = await engineOver(store, agent(scriptedModel([{ text: 'done' }])));
    await second.runs.result(run.id);
    const told = [...sequences(first.told, run.id), ...sequences(second.told, run.id)];
    expect(told).toEqual(Array.from({ length: (await journalOf(store, run.id)).length }, (_, index) => index + 1));
  });

  it('OPS-4: events name the tool, the role, who started the run, and who decided how', async () => {
    const model = scriptedModel([{ calls: [{ name: 'pay' }] }, { calls: [{ name: 'pay' }] }, { text: 'done' }], {
      place: 'transcript',
    });
    const pay = tool('pay', () => 'paid', { asks: () => ({ approverRole: 'finance' }) });
    const engine = await engineOver(new MemoryRunStore(), agent(model, [pay]));
    const decide = async (decision: 'approve' | 'deny') => {
      const waiting = await engine.runs.result(run.id);
      const [asked] = waiting.interactions;
      expect(asked).toMatchObject({ tool: 'pay', approverRole: 'finance', actor: { id: 'alice', roles: ['clerk'] } });
      const answer =
        decision === 'approve'
          ? { decision, by: 'ann', arguments: { edited: 1 } }
          : { decision, by: 'bob', note: 'a secret' };
      await engine.runs.respond(run.id, asked?.id ?? '', answer);
      await until(async () => (await engine.runs.get(run.id)).sequence > waiting.sequence + 1);
    };
    const run = await engine.runs.start({ ...start, actor: { id: 'alice', roles: ['clerk'] } });
    await decide('approve');
    await decide('deny');
    await engine.runs.result(run.id);
    const of = (...types: string[]) =>
      engine.told.filter(({ type }) => types.includes(type)).map(({ details }) => details);
    expect(new Set(engine.told.map(({ actor }) => actor))).toEqual(new Set(['alice']));
    expect(of('run.submitted')).toMatchObject([{ actor: 'alice' }]);
    expect(of('interaction.requested')).toMatchObject([
      { tool: 'pay', kind: 'approval', approverRole: 'finance', expiresAt: expect.stringMatching(/T.*Z$/) },
      { tool: 'pay', kind: 'approval', approverRole: 'finance' },
    ]);
    expect(of('interaction.answered')).toMatchObject([
      { tool: 'pay', decision: 'approve', by: 'ann', isEdited: true },
      { tool: 'pay', decision: 'deny', by: 'bob' },
    ]);
    expect(of('tool.started', 'tool.completed', 'tool.denied').map(({ tool: name }) => name)).toEqual(['pay', 'pay']);
    const { events } = await engine.runs.events(run.id, { projection: 'lifecycle' });
    expect(events.map(({ data: { at: _, ...facts } }) => facts)).toEqual(engine.told.map(({ details }) => details));
    expect(JSON.stringify([engine.told, events])).not.toMatch(/secret|edited":1/);
  });

  it('OPS-4: late evidence of a cancelled run is told too', async () => {
    const started = signal();
    const release = signal();
    const store = new MemoryRunStore();
    const engine = await engineOver(
      store,
      agent(scriptedModel([{ calls: [{ name: 'work' }] }]), [tool('work', () => (started.resolve(), release.promise))]),
    );
    const run = await engine.runs.start(start);
    await started.promise;
    await engine.runs.cancel(run.id);
    release.resolve();
    await until(() => engine.told.at(-1)?.type === 'operation.late_result');
    expect(sequences(engine.told, run.id)).toEqual(Array.from({ length: engine.told.length }, (_, index) => index + 1));
  });
});
