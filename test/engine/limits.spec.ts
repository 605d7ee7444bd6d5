import { afterEach, describe, expect, it } from '@jest/globals';
import type { Scripted } from '../../lib/model/scripted/script-step.js';
import type {
  LockedRun,
  TransitionDecision,
  TransitionRequest,
  TransitionResult,
} from '../../lib/contracts/ports/run-store.port.js';
import { PayloadTooLargeError } from '../../lib/errors/request.errors.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, stopEngines, tool } from '../support/engine-harness.js';
import { FailingStore } from '../support/failing-store.js';
import { entriesOf, rowOf } from '../support/journal-of.js';
import { signal } from '../support/signal.js';

afterEach(stopEngines);

const start = { agent: 'support', prompt: 'hello' };

async function over(steps: Scripted[], options = {}, definition = {}) {
  const store = new MemoryRunStore();
  let executed = 0;
  const model = scriptedModel(steps);
  const engine = await engineOver(
    store,
    agent(model, [tool('work', () => ++executed, { recovery: 'manual' })], definition),
    options,
  );
  return { store, engine, model, executed: () => executed };
}

const turn: Scripted = { calls: [{ name: 'work' }] };

describe('the limits of a run', () => {
  it('JRN-12: the turn limit counts model operations over the whole run, restarts of processes included', async () => {
    const { engine, model, store } = await over([turn, turn, turn, turn], {}, { maxTurns: 3 });
    const run = await engine.runs.startAndWait(start);
    expect(run).toMatchObject({ status: 'failed', error: { code: 'MAX_TURNS_EXCEEDED' }, turn: 3 });
    expect(model.requests).toHaveLength(3);
    // Nor does another process start counting anew.
    const second = await engineOver(store, agent(scriptedModel([{ text: 'never' }]), [], { maxTurns: 99 }));
    await expect(second.runs.retry(run.id)).rejects.toMatchObject({ code: 'ILLEGAL_TRANSITION' });
    expect(await second.runs.get(run.id)).toMatchObject({ status: 'failed', error: { code: 'MAX_TURNS_EXCEEDED' } });
  });

  it('JRN-12: the answer of the last turn counts', async () => {
    const { engine } = await over([turn, { text: 'done' }], {}, { maxTurns: 2 });
    expect(await engine.runs.startAndWait(start)).toMatchObject({ status: 'completed', turn: 2 });
  });

  it('JRN-12: a request that is repeated is the same turn', async () => {
    const { engine } = await over([{ text: 'done', fail: { status: 503, times: 2 } }], {}, { maxTurns: 1 });
    expect(await engine.runs.startAndWait(start)).toMatchObject({ status: 'completed', turn: 1 });
  });

  it('OPS-3: maxOperations hit before an effect fails the run; nothing is called', async () => {
    const { engine, model, executed, store } = await over(
      [turn, { calls: [{ name: 'work' }, { name: 'work' }, { name: 'work' }] }],
      {
        maxOperations: 5,
      },
    );
    const run = await engine.runs.startAndWait(start);
    expect(run).toMatchObject({
      status: 'failed',
      error: { code: 'LIMIT_EXCEEDED', message: expect.stringContaining('5') },
    });
    expect(executed()).toBe(1);
    expect(model.requests).toHaveLength(2);
    expect(await entriesOf(store, run.id, 'tool.started')).toHaveLength(1);
  });

  it('OPS-3: exactly maxOperations are allowed', async () => {
    const { engine, executed } = await over([turn, { text: 'done' }], { maxOperations: 3 });
    expect((await engine.runs.startAndWait(start)).status).toBe('completed');
    expect(executed()).toBe(1);
  });

  it('OPS-3: a limit that was lowered strands no stored run: it ends, and goes on when the limit is raised again', async () => {
    const store = new MemoryRunStore();
    const entered = signal();
    const release = signal();
    let executed = 0;
    const work = tool('work', () => (executed++, entered.resolve(), release.promise), { recovery: 'manual' });
    const definition = () => agent(scriptedModel([turn, { text: 'done' }], { place: 'transcript' }), [work]);
    const first = await engineOver(store, definition());
    const { id } = await first.runs.start(start);
    await entered.promise;
    const drained = first.stop();
    release.resolve();
    await drained;
    // Two operations are stored: a reply and its call.
    const low = await engineOver(store, definition(), { maxOperations: 1 });
    expect(await low.runs.result(id)).toMatchObject({ status: 'failed', error: { code: 'LIMIT_EXCEEDED' } });
    await low.stop();
    const high = await engineOver(store, definition());
    await high.runs.retry(id);
    expect((await high.runs.result(id)).status).toBe('completed');
    expect(executed).toBe(1);
  });

  it('OPS-3: a reply beyond maxPayloadBytes is not stored: the run fails and says so', async () => {
    const { engine, store, executed } = await over(
      [{ text: 'x'.repeat(5_000), calls: [{ name: 'work' }] }, { text: 'done' }],
      { maxPayloadBytes: 2_000 },
    );
    const run = await engine.runs.startAndWait(start);
    expect(run).toMatchObject({ status: 'failed', error: { code: 'LIMIT_EXCEEDED' } });
    expect(executed()).toBe(0);
    expect((await store.metrics()).journalBytes).toBeLessThan(4_000);
  });

  it('OPS-3: a result beyond maxPayloadBytes needs a person, nothing is repeated, and the run is not stranded (B123)', async () => {
    const store = new MemoryRunStore();
    let executed = 0;
    const engine = await engineOver(
      store,
      agent(scriptedModel([turn, { text: 'done' }]), [
        tool('work', () => (executed++, 'x'.repeat(5_000)), { recovery: 'manual' }),
      ]),
      { maxPayloadBytes: 2_000 },
    );
    const run = await engine.runs.startAndWait(start);
    expect(run).toMatchObject({ status: 'needs_attention' });
    await engine.runs.resolveTool(run.id, { key: 'r1.m1.t0', output: 'too long to keep', by: 'ann' });
    expect((await engine.runs.result(run.id)).status).toBe('completed');
    expect(executed).toBe(1);
    expect((await rowOf(store, run.id)).totals.results).toBe(3);
  });

  describe('of a store that takes only so much at once (B123)', () => {
    /** Refuses what has more characters, as a database server does with a packet. */
    class SmallStore extends FailingStore {
      constructor(private readonly limit: number) {
        super(new MemoryRunStore());
        const when = (request: unknown): boolean => this.isTooLarge(request);
        this.fail('append', { times: Infinity, when, error: tooLarge });
      }

      override transition<T>(request: TransitionRequest<T>): Promise<TransitionResult<T>> {
        const decide = (locked: LockedRun): TransitionDecision<T> => {
          const decision = request.decide(locked);
          if (this.isTooLarge(decision)) throw tooLarge();
          return decision;
        };
        return super.transition({ ...request, decide });
      }

      private isTooLarge(value: unknown): boolean {
        return JSON.stringify(value).length > this.limit;
      }
    }
    const tooLarge = (): Error => new PayloadTooLargeError('more than a packet');

    it('JRN-2: results that are too much only together are committed one by one', async () => {
      const store = new SmallStore(5_000);
      const release = signal();
      const gate = store.hold('append');
      const large = tool('large', () => release.promise.then(() => 'x'.repeat(2_000)));
      const calls = Array.from({ length: 4 }, () => ({ name: 'large' }));
      const engine = await engineOver(store, agent(scriptedModel([{ calls }, { text: 'done' }]), [large]));
      const run = await engine.runs.start(start);
      await gate.reached;
      gate.open();
      release.resolve();
      expect(await engine.runs.result(run.id)).toMatchObject({ status: 'completed' });
      expect(await entriesOf(store.inner, run.id, 'tool.completed')).toHaveLength(4);
    });

    it.each([
      ['a result', [{ calls: [{ name: 'large' }] }, { text: 'done' }]],
      ['the last reply', [{ text: 'y'.repeat(9_000) }]],
    ])(
      'JRN-2: %s that is too much at once needs a person; the worker goes on, and nothing is repeated',
      async (_, steps) => {
        const store = new SmallStore(5_000);
        let executed = 0;
        const large = tool('large', () => (executed++, 'x'.repeat(9_000)), { recovery: 'manual' });
        const model = scriptedModel(steps);
        const engine = await engineOver(store, agent(model, [large]));
        const run = await engine.runs.startAndWait(start);
        expect(run).toMatchObject({
          status: 'needs_attention',
          attention: { reason: 'limit', detail: expect.stringContaining('more than a packet') },
        });
        await engine.worker.tick();
        expect(executed).toBeLessThanOrEqual(1);
        expect(model.requests).toHaveLength(1);
        expect(engine.worker.status()).toMatchObject({ state: 'ready', activeRuns: 0 });
      },
    );
  });
});
