import { afterEach, describe, expect, it } from '@jest/globals';
import { DEFAULT_RETRY_POLICY, type RetryPolicy } from '../../lib/contracts/policies.js';
import { retryDelay } from '../../lib/engine/execution/exit-plan.js';
import type { Scripted } from '../../lib/model/scripted/script-step.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, entryTypes, stopEngines } from '../support/engine-harness.js';
import { FailingStore } from '../support/failing-store.js';
import { entriesOf, rowOf } from '../support/journal-of.js';
import { ManualClock } from '../support/manual-clock.js';
import { until } from '../support/until.js';

afterEach(stopEngines);

const start = { agent: 'support', prompt: 'hello' };
const policy = (over: Partial<RetryPolicy> = {}) => ({ modelRetry: { ...DEFAULT_RETRY_POLICY, ...over } });

/** Engine and store on one clock that moves only when told to. */
async function timed(...steps: Scripted[]) {
  const clock = new ManualClock();
  const store = new MemoryRunStore({ clock: () => clock.now() });
  const model = scriptedModel(steps);
  const definition = agent(model, [], policy());
  const engine = await engineOver(store, definition, { pollMs: 1_000, pollIdleMs: 1_000 }, clock);
  return { clock, store, model, engine, definition };
}

describe('the delay before the next request', () => {
  const standard: RetryPolicy = {
    maxAttempts: 20,
    initialDelayMs: 1_000,
    maxDelayMs: 30_000,
    maxRetryAfterMs: 600_000,
  };

  it('MOD-2: doubles from the initial delay up to maxDelay', () => {
    const delays = [1, 2, 3, 4, 5, 6, 7, 20, 1_000].map((failures) => retryDelay(standard, failures, undefined));
    expect(delays).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 30_000]);
  });

  it('MOD-2: is what the provider announced, neither earlier nor beyond maxRetryAfter (decision what-a-provider-announces, B089)', () => {
    expect(retryDelay(standard, 1, 3_000)).toBe(3_000);
    expect(retryDelay(standard, 1, 45_000)).toBe(45_000);
    expect(retryDelay(standard, 5, 0)).toBe(0);
    expect(retryDelay(standard, 1, 10 * 365 * 86_400_000)).toBe(600_000);
  });

  it('MOD-2: stays a finite whole number of milliseconds whatever the policy says (B135)', () => {
    const extreme: RetryPolicy = {
      maxAttempts: 20,
      initialDelayMs: Number.MAX_SAFE_INTEGER,
      maxDelayMs: Number.MAX_SAFE_INTEGER,
      maxRetryAfterMs: 600_000,
    };
    for (const failures of [1, 2, 53, 1_100])
      expect(Number.isSafeInteger(retryDelay(extreme, failures, undefined))).toBe(true);
  });
});

describe('a model call that fails', () => {
  it('MOD-2: is backed off, with its deadline committed together with the failure, and then made again', async () => {
    const { clock, store, model, engine } = await timed({ text: 'done', fail: { status: 503, times: 2 } });
    const run = await engine.runs.start(start);
    await clock.advance(0);
    expect(await rowOf(store, run.id)).toMatchObject({ status: 'retry_wait', nextAttemptAt: clock.now() + 1_000 });
    expect((await engine.runs.get(run.id)).nextAttemptAt).toEqual(new Date(clock.now() + 1_000));
    expect(engine.worker.status().activeRuns).toBe(0);
    await clock.advance(999);
    expect(model.requests).toHaveLength(1);
    await clock.advance(1);
    expect(model.requests).toHaveLength(2);
    await clock.advance(2_000);
    expect(await engine.runs.get(run.id)).toMatchObject({ status: 'completed', output: 'done', turn: 1, attempt: 3 });
    expect(await entryTypes(engine, run.id)).toEqual([
      'run.submitted',
      'run.started',
      'model.started',
      'model.attempt_failed',
      'run.backing_off',
      'run.resumed',
      'model.started',
      'model.attempt_failed',
      'run.backing_off',
      'run.resumed',
      'model.started',
      'model.completed',
      'run.completed',
    ]);
    expect(await entriesOf(store, run.id, 'model.started')).toMatchObject([
      { key: 'r1.m1', attempt: 1 },
      { key: 'r1.m1', attempt: 2 },
      { key: 'r1.m1', attempt: 3 },
    ]);
    expect(await entriesOf(store, run.id, 'run.resumed')).toMatchObject([{ cause: 'backoff' }, { cause: 'backoff' }]);
    expect(await entriesOf(store, run.id, 'run.backing_off')).toMatchObject([{ delayMs: 1_000 }, { delayMs: 2_000 }]);
  });

  it('MOD-2: fails the run once modelRetry.maxAttempts requests failed', async () => {
    const { clock, store, model, engine } = await timed({
      fail: { status: 503, times: Number.POSITIVE_INFINITY, message: 'overloaded' },
    });
    const run = await engine.runs.start(start);
    await clock.advance(60_000);
    expect(await engine.runs.get(run.id)).toMatchObject({
      status: 'failed',
      error: { code: 'MODEL_RETRIES_EXHAUSTED', message: expect.stringContaining('overloaded') },
      usage: { totalTokens: 0 },
    });
    expect(model.requests).toHaveLength(3);
    expect(await entriesOf(store, run.id, 'model.attempt_failed')).toMatchObject([
      { attempt: 1, error: { status: 503, retryable: true } },
      { attempt: 2 },
      { attempt: 3 },
    ]);
  });

  it.each([400, 401, 403, 404, 422])('MOD-2: is not repeated for %i', async (status) => {
    const { clock, model, engine } = await timed({ fail: { status, message: 'no' } });
    const run = await engine.runs.start(start);
    await clock.advance(60_000);
    expect(await engine.runs.get(run.id)).toMatchObject({ status: 'failed', error: { code: 'MODEL_CALL_FAILED' } });
    expect(model.requests).toHaveLength(1);
  });

  it('MOD-2: an error that is no ModelCallError is a permanent failure, kept by name and code, without its other properties', async () => {
    const clock = new ManualClock();
    const store = new MemoryRunStore({ clock: () => clock.now() });
    const generate = () =>
      Promise.reject(Object.assign(new TypeError('bad input'), { request: { headers: 'canary' }, code: 'ERR_X' }));
    const engine = await engineOver(store, agent({ name: 'broken', generate }), {}, clock);
    const run = await engine.runs.start(start);
    await clock.advance(60_000);
    expect(await engine.runs.get(run.id)).toMatchObject({ status: 'failed', error: { code: 'MODEL_CALL_FAILED' } });
    expect(JSON.stringify(await engine.runs.events(run.id))).not.toContain('canary');
  });

  it('MOD-2: Retry-After decides when, up to maxRetryAfter, and is journaled as announced', async () => {
    const { clock, store, model, engine } = await timed({
      text: 'done',
      fail: { status: 429, retryAfterMs: 86_400_000 },
    });
    const run = await engine.runs.start(start);
    await clock.advance(0);
    expect(await entriesOf(store, run.id, 'run.backing_off')).toMatchObject([
      { delayMs: 600_000, retryAfterMs: 86_400_000, key: 'r1.m1' },
    ]);
    await clock.advance(599_999);
    expect(model.requests).toHaveLength(1);
    await clock.advance(1);
    expect((await engine.runs.get(run.id)).status).toBe('completed');
  });

  it('MOD-2: Retry-After: 0 means at once', async () => {
    const { clock, model, engine } = await timed({ text: 'done', fail: { status: 429, retryAfterMs: 0 } });
    const run = await engine.runs.start(start);
    await clock.advance(1_000);
    expect((await engine.runs.get(run.id)).status).toBe('completed');
    expect(model.requests).toHaveLength(2);
  });

  it('MOD-2: a backoff survives its process: another one goes on when it is due, not earlier', async () => {
    const { clock, store, engine, definition } = await timed({
      text: 'x',
      fail: { status: 503, retryAfterMs: 30_000 },
    });
    const run = await engine.runs.start(start);
    await clock.advance(0);
    await engine.stop();
    const model = scriptedModel([{ text: 'done' }]);
    const second = await engineOver(store, { ...definition, model }, { pollMs: 1_000, pollIdleMs: 1_000 }, clock);
    await clock.advance(29_999);
    expect(model.requests).toHaveLength(0);
    expect((await second.runs.get(run.id)).status).toBe('retry_wait');
    await clock.advance(1_001);
    expect(await second.runs.get(run.id)).toMatchObject({ status: 'completed', attempt: 2 });
    expect(await entriesOf(store, run.id, 'model.started')).toMatchObject([{ attempt: 1 }, { attempt: 2 }]);
  });

  it('MOD-2: the backoff cron finds due runs that no poll would look at', async () => {
    const { clock, store, definition, engine } = await timed({ text: 'x', fail: { status: 503 } });
    const run = await engine.runs.start(start);
    await clock.advance(0);
    await engine.stop();
    const model = scriptedModel([{ text: 'done' }]);
    const second = await engineOver(store, { ...definition, model }, { pollMs: 10 ** 9, pollIdleMs: 10 ** 9 }, clock);
    await clock.advance(5_000);
    expect(model.requests).toHaveLength(0);
    await second.recovery.runDueBackoffs();
    await clock.advance(0);
    expect((await second.runs.get(run.id)).status).toBe('completed');
  });

  it('MOD-2: a crash consumes an attempt number, but only failures of the provider exhaust the retries (decision timeouts-and-crashes)', async () => {
    const inner = new MemoryRunStore();
    const options = { maxRecoveries: 10 };
    const run = { id: '' };
    for (let crash = 0; crash < 4; crash++) {
      const store = new FailingStore(inner);
      const model = scriptedModel([{ hang: 'deaf' }]);
      const engine = await engineOver(store, agent(model), options);
      if (crash === 0) run.id = (await engine.runs.start(start)).id;
      await model.requested(1);
      store.kill();
      engine.forget();
      await inner.retireWorker(engine.worker.workerId);
    }
    const last = await engineOver(
      inner,
      agent(scriptedModel([{ text: 'done', fail: { status: 503, times: 2 } }])),
      options,
    );
    expect(await last.runs.result(run.id)).toMatchObject({ status: 'completed', turn: 1, usage: { totalTokens: 15 } });
    expect((await entriesOf(inner, run.id, 'model.started')).map(({ attempt }) => attempt)).toEqual([
      1, 2, 3, 4, 5, 6, 7,
    ]);
  });

  it('MOD-2: cancel and backoff: a cancelled run does not come back when it would have been due', async () => {
    const { clock, model, engine } = await timed({ text: 'x', fail: { status: 503 } });
    const run = await engine.runs.start(start);
    await clock.advance(0);
    await engine.runs.cancel(run.id);
    await clock.advance(60_000);
    expect(await engine.runs.get(run.id)).toMatchObject({ status: 'cancelled' });
    expect((await engine.runs.get(run.id)).nextAttemptAt).toBeUndefined();
    expect(model.requests).toHaveLength(1);
  });

  it('MOD-2: failures count per model call: one that succeeded starts the next from anew', async () => {
    const { clock, engine } = await timed(
      { calls: [{ name: 'nothing' }], fail: { status: 503, times: 2 } },
      { text: 'done', fail: { status: 503, times: 2 } },
    );
    const run = await engine.runs.start(start);
    await clock.advance(60_000);
    expect(await engine.runs.get(run.id)).toMatchObject({ status: 'completed', turn: 2 });
  });

  it('MOD-2: an outage of the store while the failure is recorded loses neither the failure nor the deadline', async () => {
    const store = new FailingStore(new MemoryRunStore());
    const model = scriptedModel([{ text: 'done', fail: { status: 503 } }]);
    const engine = await engineOver(store, agent(model, [], policy({ initialDelayMs: 1 })));
    store.fail('transition', { times: 2 });
    store.fail('transition', { lost: true });
    const run = await engine.runs.start(start);
    expect((await engine.runs.result(run.id)).status).toBe('completed');
    expect(await entriesOf(store, run.id, 'model.attempt_failed')).toHaveLength(1);
    expect(await entriesOf(store, run.id, 'run.backing_off')).toHaveLength(1);
    await until(() => engine.worker.status().activeRuns === 0);
  });
});
