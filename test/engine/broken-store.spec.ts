import { afterEach, describe, expect, it } from '@jest/globals';
import type { JournalEntry } from '../../lib/contracts/journal-entry.js';
import type { TransitionRequest, TransitionResult } from '../../lib/contracts/ports/run-store.port.js';
import { BrokenStoreError, NewerSchemaError, SequenceConflictError } from '../../lib/errors/store.errors.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, stopEngines, tool } from '../support/engine-harness.js';
import { FailingStore, type StoreMethod } from '../support/failing-store.js';
import { entriesOf, rowOf } from '../support/journal-of.js';
import { ManualClock } from '../support/manual-clock.js';
import { signal } from '../support/signal.js';

afterEach(stopEngines);

const start = { agent: 'support', prompt: 'hello' };

/** A worker with one run inside a tool, and another one inside its model request. */
async function working(onStoreFailure: (error: Error) => void = () => undefined) {
  const clock = new ManualClock();
  const store = new FailingStore(new MemoryRunStore({ clock: () => clock.now() }));
  const entered = signal();
  const aborted = { tool: false, model: false };
  const model = scriptedModel(
    [
      ({ messages, signal: stop }) => {
        if (!JSON.stringify(messages).includes('hang')) return { calls: [{ name: 'work' }] };
        stop.addEventListener('abort', () => (aborted.model = true));
        return { hang: true };
      },
      { text: 'done' },
    ],
    { place: 'transcript' },
  );
  const release = signal<unknown>();
  const work = tool('work', (_, { signal: stop }) => {
    stop.addEventListener('abort', () => (aborted.tool = true));
    entered.resolve();
    return release.promise;
  });
  const settings = { pollMs: 1_000, pollIdleMs: 1_000, leaseMs: 6_000, onStoreFailure };
  const engine = await engineOver(store, agent(model, [work]), settings, clock);
  const inTool = await engine.runs.start(start);
  const inModel = await engine.runs.start({ ...start, prompt: 'hang' });
  await entered.promise;
  await model.requested(2);
  return { clock, store, engine, aborted, release, ids: [inTool.id, inModel.id] };
}

describe('a store that broke a promise', () => {
  const promises: [what: string, method: StoreMethod, error: () => Error][] = [
    ['an unexpected row count in the heartbeat', 'heartbeat', () => new BrokenStoreError('2 rows')],
    ['an unexpected row count while looking for runs', 'due', () => new BrokenStoreError('2 rows')],
    ['a newer schema', 'due', () => new NewerSchemaError('schema 9')],
    ['a sequence gap', 'append', () => new SequenceConflictError('expected 5, got 7')],
  ];

  it.each(promises)(
    'STO-4: %s stops the worker for good: calls aborted, nothing claimed, the runs keep their status',
    async (_, method, error) => {
      const failures: Error[] = [];
      const { clock, store, engine, aborted, release, ids } = await working((failure) => failures.push(failure));
      const before = await Promise.all(ids.map((id) => rowOf(store.inner, id)));
      store.fail(method, { error, times: Number.POSITIVE_INFINITY });
      if (method === 'append') release.resolve('worked');
      await clock.advance(10_000);
      expect(engine.worker.status()).toMatchObject({ state: 'failed', activeRuns: 0, reason: error().message });
      expect(aborted).toEqual({ tool: method !== 'append', model: true });
      expect(failures.map(({ message }) => message)).toEqual([error().message]);
      expect(await Promise.all(ids.map((id) => rowOf(store.inner, id)))).toEqual(before);
      // For good: also when the store seems well again.
      store.heal();
      const [due, beats] = [store.count('due'), store.count('heartbeat')];
      await clock.advance(60_000);
      engine.worker.wake();
      await engine.worker.tick();
      expect([store.count('due'), store.count('heartbeat')]).toEqual([due, beats]);
      await expect(engine.runs.start(start)).rejects.toMatchObject({ message: error().message });
      expect(engine.worker.status().state).toBe('failed');
    },
  );

  it('STO-4: another process takes its runs over once the lease has run out', async () => {
    const { clock, store, engine, ids } = await working();
    store.fail('due', { error: () => new BrokenStoreError('2 rows') });
    await clock.advance(1_500);
    expect(engine.worker.status().state).toBe('failed');
    const second = await engineOver(
      store.inner,
      agent(scriptedModel([{ text: 'by the second' }]), [tool('work', () => 'worked')]),
      { pollMs: 1_000, pollIdleMs: 1_000, leaseMs: 6_000 },
      clock,
    );
    await clock.advance(6_000);
    await second.recovery.reconcile();
    await clock.advance(2_000);
    expect((await rowOf(store.inner, ids[0] as string)).attempt).toBe(2);
  });

  it('STO-4: reading and cancelling go on', async () => {
    const { clock, store, engine, ids } = await working();
    store.fail('due', { error: () => new BrokenStoreError('2 rows') });
    await clock.advance(1_500);
    expect((await engine.runs.get(ids[0] as string)).status).toBe('running');
    expect((await engine.runs.cancel(ids[0] as string)).status).toBe('cancelled');
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('handler broke');
      },
    ],
    ['rejects', () => Promise.reject(new Error('handler broke')) as unknown as void],
  ])('STO-4: an onStoreFailure that %s is logged and changes nothing', async (_, handler) => {
    const unhandled: unknown[] = [];
    const onUnhandled = (error: unknown) => unhandled.push(error);
    process.on('unhandledRejection', onUnhandled);
    try {
      const { clock, store, engine } = await working(handler);
      store.fail('due', { error: () => new BrokenStoreError('2 rows') });
      await clock.advance(1_500);
      await new Promise((resolve) => setTimeout(resolve, 5));
      expect(engine.worker.status().state).toBe('failed');
      expect(engine.logged).toContainEqual(
        expect.objectContaining({ level: 'error', message: expect.stringContaining('onStoreFailure') }),
      );
      expect(unhandled).toEqual([]);
    } finally {
      process.off('unhandledRejection', onUnhandled);
    }
  });

  it('I11: a store that fails against its contract leaves no run with a live lease and nobody at work', async () => {
    const { clock, store, engine, release, ids } = await working();
    store.fail('append', { error: () => new TypeError('cannot read properties of undefined') });
    store.fail('transition', { error: () => new TypeError('cannot read properties of undefined') });
    release.resolve('worked');
    await clock.advance(5_000);
    // Lost to nobody: it was put back, and goes on.
    expect(await rowOf(store.inner, ids[0] as string)).toMatchObject({ status: 'completed', attempt: 2 });
    expect(engine.worker.status().state).toBe('ready');
    await engine.runs.cancel(ids[1] as string);
  });
});

/** Cannot write transitions with such an entry. */
class UnableStore extends FailingStore {
  constructor(private readonly isRefused: (entry: JournalEntry) => boolean) {
    super(new MemoryRunStore());
  }

  override transition<T>(request: TransitionRequest<T>): Promise<TransitionResult<T>> {
    const decide: TransitionRequest<T>['decide'] = (locked) => {
      const decision = request.decide(locked);
      if (decision.run?.entries.some(this.isRefused)) throw new TypeError('Do not know how to serialize a BigInt');
      return decision;
    };
    return super.transition({ ...request, decide });
  }
}

describe('a failed request whose failure cannot be written', () => {
  const refusing = async (isRefused: (entry: JournalEntry) => boolean) => {
    const store = new UnableStore(isRefused);
    const model = scriptedModel([{ fail: { status: 400, times: Number.POSITIVE_INFINITY } }]);
    const engine = await engineOver(store, agent(model), { maxRecoveries: 3 });
    const run = await engine.runs.startAndWait(start);
    return { store, model, engine, run };
  };

  it('is not made again: the run needs attention, with the reason', async () => {
    const { model, run } = await refusing(({ type }) => type === 'run.failed');
    expect(run).toMatchObject({
      status: 'needs_attention',
      attention: { detail: expect.stringContaining('Do not know how to serialize a BigInt') },
    });
    expect(model.requests).toHaveLength(1);
  });

  it('is made again at most maxRecoveries times where the reason cannot be written either, with doubling pauses; observers are told', async () => {
    const { store, model, engine, run } = await refusing(
      (entry) =>
        entry.type === 'run.failed' ||
        (entry.type === 'run.attention_needed' && entry.attention.reason !== 'recovery_exhausted'),
    );
    expect(run).toMatchObject({ status: 'needs_attention', attention: { reason: 'recovery_exhausted' } });
    expect(model.requests).toHaveLength(4);
    const pauses = await entriesOf(store.inner, run.id, 'run.backing_off');
    expect(pauses.map(({ delayMs }) => delayMs)).toEqual([1, 2, 4]);
    expect(engine.told.filter(({ type }) => type === 'run.backing_off')).toHaveLength(3);
  });
});
