import { afterEach, describe, expect, it } from '@jest/globals';
import type { FinishReason } from '../../lib/contracts/journal-entry.js';
import type { RecordedText } from '../../lib/contracts/text.js';
import type { RunRecord } from '../../lib/contracts/run.js';
import { RUN_STATUSES } from '../../lib/contracts/run-status.js';
import type { Scripted } from '../../lib/model/scripted/script-step.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { submit } from '../../packages/contract/lib/scenario.js';
import { mortalEngine } from '../support/crash.js';
import { agent, engineOver, stopEngines, tool } from '../support/engine-harness.js';
import { entriesOf, journalOf, rowOf } from '../support/journal-of.js';
import { signal } from '../support/signal.js';

afterEach(stopEngines);

const start = { agent: 'support', prompt: 'hello' };

/** Two turns of a tool, then a reply that fails until `heal` is called. */
function failing() {
  const state = { healed: false };
  const steps: Scripted[] = [
    { calls: [{ name: 'work' }] },
    () => (state.healed ? { text: 'done' } : { fail: { status: 503, times: Number.POSITIVE_INFINITY } }),
  ];
  return { state, model: scriptedModel(steps, { place: 'transcript' }) };
}

describe('retrying a run', () => {
  it('JRN-11: a failed one goes on after its last result; the failures of its unfinished call are counted anew', async () => {
    const store = new MemoryRunStore();
    const { state, model } = failing();
    let executed = 0;
    const engine = await engineOver(store, agent(model, [tool('work', () => ++executed, { recovery: 'manual' })]));
    const run = await engine.runs.startAndWait(start);
    expect(run).toMatchObject({ status: 'failed', error: { code: 'MODEL_RETRIES_EXHAUSTED' } });
    expect(model.requests).toHaveLength(4);
    await engine.runs.retry(run.id, { by: 'ann', reason: 'provider is back' });
    // Still down: three more requests before it fails again.
    expect((await engine.runs.result(run.id)).status).toBe('failed');
    expect(model.requests).toHaveLength(7);
    state.healed = true;
    await engine.runs.retry(run.id);
    const ended = await engine.runs.result(run.id);
    expect(ended).toMatchObject({ status: 'completed', output: 'done', turn: 2 });
    expect(ended.error).toBeUndefined();
    expect(executed).toBe(1);
    expect(await entriesOf(store, run.id, 'run.retried')).toMatchObject([
      { by: 'ann', reason: 'provider is back' },
      {},
    ]);
    expect((await entriesOf(store, run.id, 'run.resumed')).map(({ cause }) => cause)).toContain('retried');
    expect((await entriesOf(store, run.id, 'model.started')).at(-1)).toMatchObject({ key: 'r1.m2', attempt: 7 });
  });

  it.each<[FinishReason, string]>([
    ['length', 'OUTPUT_TRUNCATED'],
    ['refusal', 'MODEL_REFUSED'],
    ['content-filter', 'MODEL_REFUSED'],
    ['error', 'MODEL_RETRIES_EXHAUSTED'],
  ])(
    'R210: one whose reply ended with %s asks the model again, and keeps what was done',
    async (finishReason, code) => {
      const store = new MemoryRunStore();
      let isWell = false;
      let executed = 0;
      const bad = { text: 'Half', calls: [{ name: 'work' }], finishReason };
      const script: Scripted[] = [{ calls: [{ name: 'work' }] }, () => (isWell ? { text: 'done' } : bad)];
      const model = scriptedModel(script, { place: 'transcript' });
      const engine = await engineOver(store, agent(model, [tool('work', () => ++executed, { recovery: 'manual' })]));
      const run = await engine.runs.startAndWait(start);
      expect(run).toMatchObject({ status: 'failed', error: { code } });
      const requests = model.requests.length;
      // Still unwell: asked, and failed anew.
      await engine.runs.retry(run.id);
      expect(await engine.runs.result(run.id)).toMatchObject({ status: 'failed', error: { code } });
      expect(model.requests.length).toBeGreaterThan(requests);
      isWell = true;
      await engine.runs.retry(run.id);
      expect(await engine.runs.result(run.id)).toMatchObject({ status: 'completed', output: 'done', turn: 2 });
      expect(executed).toBe(1);
      // Nothing of a bad reply is in what the model is sent.
      expect(model.requests.at(-1)?.messages).toEqual(model.requests[1]?.messages);
    },
  );

  it('R210: a reply whose cut calls were told to the model twice is asked for anew', async () => {
    const cut = { calls: [{ name: 'work' }], finishReason: 'length' as const };
    const model = scriptedModel([cut, cut, cut, { text: 'done' }]);
    const definition = agent(model, [tool('work', () => 1)], { truncatedCalls: 'feedback' });
    const engine = await engineOver(new MemoryRunStore(), definition);
    const run = await engine.runs.startAndWait(start);
    expect(run).toMatchObject({ status: 'failed', error: { code: 'OUTPUT_TRUNCATED' } });
    await engine.runs.retry(run.id);
    expect(await engine.runs.result(run.id)).toMatchObject({ status: 'completed', output: 'done' });
  });

  it('RUN-5: the text of a reply that ended badly is the output of the part that failed with it', async () => {
    const model = scriptedModel([{ text: 'Half', finishReason: 'length' }, { text: 'done' }]);
    const engine = await engineOver(new MemoryRunStore(), agent(model));
    const run = await engine.runs.startAndWait(start);
    expect(run.output).toBe('Half');
    await engine.runs.restart(run.id);
    expect(await engine.runs.result(run.id)).toMatchObject({
      output: 'done',
      previousGenerations: [{ output: 'Half' }],
    });
  });

  it.each(['retry', 'restart'] as const)(
    'BUD-3: %s of a run whose budget cannot be kept is refused, for it would fail again at once',
    async (verb) => {
      const model = scriptedModel([{ text: 'done', usage: null }]);
      const engine = await engineOver(new MemoryRunStore(), agent(model));
      const run = await engine.runs.startAndWait({ ...start, budget: { maxTotalTokens: 100 } });
      expect(run).toMatchObject({ status: 'failed', error: { code: 'USAGE_UNKNOWN' } });
      await expect(engine.runs[verb](run.id)).rejects.toMatchObject({
        code: 'ILLEGAL_TRANSITION',
        message: expect.stringContaining('Start a new run'),
      });
    },
  );

  it('BUD-1: tokens of replies that ended badly count: the next attempt waits for more', async () => {
    const bad = { text: 'Half', finishReason: 'error' as const };
    const model = scriptedModel([bad, bad, { text: 'done' }]);
    const engine = await engineOver(new MemoryRunStore(), agent(model));
    const run = await engine.runs.startAndWait({ ...start, budget: { maxTotalTokens: 30 } });
    expect(run).toMatchObject({ status: 'waiting', waitingFor: ['budget'], usage: { totalTokens: 30 } });
    expect(model.requests).toHaveLength(2);
    await engine.runs.grantBudget(run.id, 100, { by: 'ann' });
    expect(await engine.runs.result(run.id)).toMatchObject({ status: 'completed', usage: { totalTokens: 45 } });
  });

  describe('at its turn limit', () => {
    const work = { calls: [{ name: 'work' }] };
    const limited = async (store = new MemoryRunStore()) => {
      const model = scriptedModel([work, work, work, { text: 'done' }]);
      const engine = await engineOver(store, agent(model, [tool('work', () => 1)], { maxTurns: 2 }));
      const run = await engine.runs.startAndWait(start);
      expect(run).toMatchObject({ status: 'failed', error: { code: 'MAX_TURNS_EXCEEDED' } });
      return { engine, model, run };
    };

    it.each(['retry', 'restart'] as const)('%s is refused without a higher one, and says so', async (verb) => {
      const { engine, model, run } = await limited();
      expect(run.error?.message).toContain('retry it with a higher maxTurns');
      await expect(engine.runs[verb](run.id)).rejects.toMatchObject({
        code: 'ILLEGAL_TRANSITION',
        message: expect.stringContaining(`Give ${verb} a higher maxTurns`),
      });
      for (const maxTurns of [2, 1, 0, -1, 2.5, '9', null, Number.NaN])
        await expect(engine.runs[verb](run.id, { maxTurns } as never)).rejects.toMatchObject({
          code: 'INVALID_REQUEST',
          message: expect.stringContaining('maxTurns'),
        });
      expect((await engine.runs.get(run.id)).status).toBe('failed');
      expect(model.requests).toHaveLength(2);
    });

    it('retry with a higher one goes on, in the next process too, and is journaled', async () => {
      const store = new MemoryRunStore();
      const { engine, run } = await limited(store);
      await engine.runs.retry(run.id, { by: 'ann', maxTurns: 3 });
      expect(await engine.runs.result(run.id)).toMatchObject({ error: { code: 'MAX_TURNS_EXCEEDED' }, turn: 3 });
      await engine.runs.retry(run.id, { maxTurns: 9 });
      expect(await engine.runs.result(run.id)).toMatchObject({ status: 'completed', turn: 4 });
      expect(await entriesOf(store, run.id, 'run.retried')).toMatchObject([
        { by: 'ann', maxTurns: 3 },
        { maxTurns: 9 },
      ]);
      expect((await rowOf(store, run.id)).frozen.maxTurns).toBe(9);
    });

    it('restart with a higher one begins anew', async () => {
      const store = new MemoryRunStore();
      const { engine, run } = await limited(store);
      await engine.runs.restart(run.id, { maxTurns: 9 });
      expect(await engine.runs.result(run.id)).toMatchObject({ status: 'completed', turn: 4, restarts: 1 });
      expect(await entriesOf(store, run.id, 'run.restarted')).toMatchObject([{ maxTurns: 9 }]);
    });
  });

  it('JRN-11: opens the run again: no error, no end', async () => {
    const store = new MemoryRunStore();
    await submit(store, {
      id: 'r',
      status: 'failed',
      error: { code: 'X', message: 'x' as RecordedText },
      output: 'half',
      finishedAt: 5,
      attempt: 3,
      owner: 'gone',
    });
    const engine = await engineOver(store, agent(scriptedModel([])));
    engine.worker.pause();
    const run = await engine.runs.retry('r');
    expect(run).toMatchObject({ status: 'pending', phase: 'active', attempt: 3 });
    expect(run.error).toBeUndefined();
    expect(run.finishedAt).toBeUndefined();
    expect(run.output).toBeUndefined();
  });

  it.each(RUN_STATUSES.filter((status) => status !== 'failed' && status !== 'needs_attention'))(
    'RUN-1: one that is %s is not retried',
    async (status) => {
      const store = new MemoryRunStore();
      await submit(store, { id: 'r', status });
      const engine = await engineOver(store, agent(scriptedModel([])));
      engine.worker.pause();
      await expect(engine.runs.retry('r')).rejects.toMatchObject({
        code: 'ILLEGAL_TRANSITION',
        details: { status, verb: 'retry' },
      });
      expect((await rowOf(store, 'r')).status).toBe(status);
    },
  );

  it('JRN-11: does not unlock a manual tool', async () => {
    const store = new MemoryRunStore();
    const entered = signal();
    let executed = 0;
    const script = [{ calls: [{ name: 'pay' }] }, { text: 'done' }];
    const pay = (hangs: boolean) =>
      tool('pay', () => (executed++, entered.resolve(), hangs ? new Promise(() => undefined) : 'paid'), {
        recovery: 'manual',
      });
    const first = await mortalEngine(store, agent(scriptedModel(script), [pay(true)]));
    const run = await first.runs.start(start);
    await entered.promise;
    await first.crash();
    const engine = await engineOver(store, agent(scriptedModel(script, { place: 'transcript' }), [pay(false)]));
    expect((await engine.runs.result(run.id)).status).toBe('needs_attention');
    await engine.runs.retry(run.id);
    expect(await engine.runs.result(run.id)).toMatchObject({
      status: 'needs_attention',
      attention: { operationKey: 'r1.m1.t0' },
    });
    expect(executed).toBe(1);
  });

  it('JRN-11: is refused once a later run of its session has started, and takes the session back where none has', async () => {
    const store = new MemoryRunStore();
    const model = scriptedModel(
      [
        ({ messages }) =>
          JSON.stringify(messages.at(-1)).includes('bad')
            ? { fail: { status: 400, times: Number.POSITIVE_INFINITY } }
            : { text: 'ok' },
      ],
      { place: 'transcript' },
    );
    const engine = await engineOver(store, agent(model));
    const failed = await engine.runs.startAndWait({ ...start, prompt: 'bad', sessionId: 's' });
    expect(failed.status).toBe('failed');
    engine.worker.pause();
    await engine.runs.retry(failed.id);
    expect((await store.session('s'))?.headRunId).toBe(failed.id);
    await expect(engine.runs.start({ ...start, sessionId: 's' })).rejects.toMatchObject({ code: 'SESSION_BUSY' });
    engine.worker.resume();
    expect((await engine.runs.result(failed.id)).status).toBe('failed');
    await engine.runs.startAndWait({ ...start, sessionId: 's' });
    const before = await journalOf(store, failed.id);
    await expect(engine.runs.retry(failed.id)).rejects.toMatchObject({ code: 'ILLEGAL_TRANSITION' });
    expect(await journalOf(store, failed.id)).toEqual(before);
  });

  it('JRN-7a: is refused where nobody alive could execute it, and costs no attempt', async () => {
    const store = new MemoryRunStore();
    await submit(store, { id: 'r', status: 'failed', definitionHash: 'hash-of-old', attempt: 2 });
    const engine = await engineOver(store, agent(scriptedModel([])));
    await expect(engine.runs.retry('r')).rejects.toMatchObject({
      code: 'VERSION_UNAVAILABLE',
      details: { wanted: 'support@1#hash-of-old', offered: ['support@1#hash-1'] },
    });
    expect(await rowOf(store, 'r')).toMatchObject({ status: 'failed', attempt: 2 });
  });

  it('JRN-11: clears the count of recoveries: the run gets all of them again', async () => {
    const store = new MemoryRunStore();
    const attention: RunRecord['attention'] = { reason: 'recovery_exhausted', detail: 'x' as RecordedText };
    await submit(store, { id: 'r', status: 'needs_attention', attention, recoveries: 5, attempt: 6 });
    const engine = await engineOver(store, agent(scriptedModel([])));
    engine.worker.pause();
    const run = await engine.runs.retry('r');
    expect(run).toMatchObject({ status: 'pending', recoveries: 0 });
    expect(run.attention).toBeUndefined();
  });

  it('JRN-11: of two at once one is told that there is nothing to retry any more', async () => {
    const store = new MemoryRunStore();
    await submit(store, { id: 'r', status: 'failed' });
    const engine = await engineOver(store, agent(scriptedModel([])));
    engine.worker.pause();
    const answers = await Promise.allSettled([engine.runs.retry('r'), engine.runs.retry('r')]);
    expect(answers.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await entriesOf(store, 'r', 'run.retried')).toHaveLength(1);
  });
});
