import { afterEach, describe, expect, it } from '@jest/globals';
import type { RunRecord } from '../../lib/contracts/run.js';
import { RUN_STATUSES, isSettled, type RunStatus } from '../../lib/contracts/run-status.js';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { aiSdkModel } from '../../lib/model/ai-sdk/ai-sdk-model.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { submit } from '../../packages/contract/lib/scenario.js';
import { mortalEngine } from '../support/crash.js';
import { agent, engineOver, entryTypes, stopEngines, tool } from '../support/engine-harness.js';
import { FailingStore } from '../support/failing-store.js';
import { entriesOf, journalOf, rowOf } from '../support/journal-of.js';
import { scriptPrompt, startModelServer } from '../support/model-server.js';
import { signal } from '../support/signal.js';
import { until } from '../support/until.js';

afterEach(stopEngines);

const start = { agent: 'support', prompt: 'hello' };

/** A stored run in a status, that nobody executes. */
async function stored(status: RunStatus, overrides: Partial<RunRecord> = {}) {
  const store = new MemoryRunStore();
  await submit(store, {
    id: 'r',
    status,
    ...(status === 'retry_wait' && { nextAttemptAt: Date.now() + 3_600_000 }),
    ...(status === 'waiting' && { waitingFor: ['approval'] }),
    ...(status === 'running' && { attempt: 1, owner: 'gone' }),
    ...overrides,
  });
  const engine = await engineOver(store, agent(scriptedModel([])), { worker: false });
  return { store, engine };
}

describe('cancelling a run', () => {
  it.each(RUN_STATUSES.filter((status) => !isSettled(status)))(
    'RUN-2: one that is %s is cancelled at once, for good',
    async (status) => {
      const { engine, store } = await stored(status);
      const run = await engine.runs.cancel('r', { by: 'ann', reason: 'no longer needed' });
      expect(run).toMatchObject({ status: 'cancelled', phase: 'settled', finishedAt: expect.any(Date) });
      expect(await rowOf(store, 'r')).toMatchObject({
        nextAttemptAt: null,
        waitingFor: [],
        attention: null,
        wake: null,
      });
      expect(await entriesOf(store, 'r', 'run.cancelled')).toMatchObject([{ by: 'ann', reason: 'no longer needed' }]);
      const before = await rowOf(store, 'r');
      const worker = await engineOver(store, agent(scriptedModel([{ text: 'never' }])));
      await worker.recovery.reconcile();
      await worker.recovery.runDueBackoffs();
      await worker.worker.tick();
      expect(await rowOf(store, 'r')).toEqual(before);
    },
  );

  it.each(RUN_STATUSES.filter((status) => isSettled(status) && status !== 'cancelled'))(
    'RUN-1: one that is %s is not',
    async (status) => {
      const { engine, store } = await stored(status, { finishedAt: 1 });
      await expect(engine.runs.cancel('r')).rejects.toMatchObject({ code: 'ILLEGAL_TRANSITION', details: { status } });
      expect(await rowOf(store, 'r')).toMatchObject({ status, finishedAt: 1, revision: 1 });
    },
  );

  it('RUN-2: twice is once: the second answers with the same state and writes nothing', async () => {
    const { engine, store } = await stored('pending');
    const first = await engine.runs.cancel('r', { by: 'ann' });
    expect(await engine.runs.cancel('r', { by: 'bob' })).toEqual(first);
    expect(await journalOf(store, 'r')).toHaveLength(2);
  });

  it('RUN-2: aborts the signal of the model request in this process at once', async () => {
    const store = new MemoryRunStore();
    const aborted = signal();
    const model = {
      name: 'listening',
      generate: ({ signal: stop }: { signal: AbortSignal }) =>
        new Promise<never>((_, reject) => {
          stop.addEventListener('abort', () => (aborted.resolve(), reject(new Error('stopped'))));
        }),
    };
    const engine = await engineOver(store, agent(model));
    const run = await engine.runs.start(start);
    await engine.runs.cancel(run.id);
    await aborted.promise;
    expect(await entryTypes(engine, run.id)).toEqual([
      'run.submitted',
      'run.started',
      'model.started',
      'run.cancelled',
    ]);
    expect(engine.worker.status().activeRuns).toBe(0);
  });

  it('RUN-2: aborts the signal of a tool in another process within a poll interval (B158)', async () => {
    const store = new MemoryRunStore();
    const started = signal();
    const aborted = signal();
    const work = tool('work', (_, { signal: stop }) => {
      stop.addEventListener('abort', () => aborted.resolve());
      started.resolve();
      return new Promise(() => undefined);
    });
    const owner = await engineOver(store, agent(scriptedModel([{ calls: [{ name: 'work' }] }]), [work]));
    const other = await engineOver(store, agent(scriptedModel([])), { worker: false });
    const run = await owner.runs.start(start);
    await started.promise;
    await other.runs.cancel(run.id);
    await aborted.promise;
    await until(() => owner.worker.status().activeRuns === 0);
  });

  it('RUN-2: ends the request of a model in another process, on the wire (B158)', async () => {
    const server = await startModelServer();
    try {
      const store = new MemoryRunStore();
      const model = aiSdkModel(createOpenAICompatible({ name: 'served', baseURL: server.url })('m'));
      const owner = await engineOver(store, agent(model));
      const other = await engineOver(store, agent(model), { worker: false });
      const run = await owner.runs.start({ ...start, prompt: scriptPrompt({ hang: true }) });
      const { gone } = await server.requested(1);
      await other.runs.cancel(run.id);
      await gone;
      expect(server.requests).toHaveLength(1);
    } finally {
      await stopEngines();
      await server.close();
    }
  });

  it('RUN-2: is seen at the next commit, also when no poll has come: nothing more is begun', async () => {
    const store = new MemoryRunStore();
    const started = signal();
    const release = signal();
    const model = scriptedModel([{ calls: [{ name: 'work' }] }, { text: 'never' }]);
    const owner = await engineOver(
      store,
      agent(model, [tool('work', () => (started.resolve(), release.promise.then(() => 'late')))]),
      { pollMs: 600_000, pollIdleMs: 600_000 },
    );
    const other = await engineOver(store, agent(scriptedModel([])), { worker: false });
    const run = await owner.runs.start(start);
    await started.promise;
    await other.runs.cancel(run.id);
    release.resolve();
    await until(() => owner.worker.status().activeRuns === 0);
    expect(model.requests).toHaveLength(1);
    expect((await rowOf(store, run.id)).status).toBe('cancelled');
  });

  const late: [what: string, end: () => unknown, evidence: object][] = [
    ['the result', () => ({ sent: true }), { output: { sent: true } }],
    [
      'the error',
      () => {
        throw new Error('boom');
      },
      { error: { message: 'boom' } },
    ],
  ];

  it.each(late)(
    'RUN-2: %s of a tool that ignores its signal is kept as evidence; it counts nowhere and moves nothing (B035)',
    async (_, end, evidence) => {
      const store = new MemoryRunStore();
      const started = signal();
      const release = signal();
      const model = scriptedModel([{ calls: [{ name: 'work' }] }]);
      const owner = await engineOver(
        store,
        agent(model, [tool('work', () => (started.resolve(), release.promise.then(end)), { recovery: 'manual' })]),
        { pollMs: 600_000, pollIdleMs: 600_000 },
      );
      const other = await engineOver(store, agent(scriptedModel([])), { worker: false });
      const run = await owner.runs.start({ ...start, sessionId: 's' });
      await started.promise;
      const cancelled = await other.runs.cancel(run.id);
      const next = await other.runs.start({ ...start, sessionId: 's' });
      release.resolve();
      await until(async () => (await journalOf(store, run.id)).at(-1)?.type === 'operation.late_result');
      expect((await entriesOf(store, run.id, 'operation.late_result'))[0]).toMatchObject({
        key: 'r1.m1.t0',
        attempt: 1,
        ...evidence,
      });
      expect(await owner.runs.get(run.id)).toMatchObject({
        status: 'cancelled',
        usage: cancelled.usage,
        finishedAt: cancelled.finishedAt,
      });
      expect((await rowOf(store, run.id)).totals).toMatchObject({ results: 1 });
      // Neither is it part of the transcript.
      expect((await owner.runs.messages(run.id)).map(({ role }) => role)).toEqual(['user', 'assistant']);
      expect((await owner.runs.snapshot(run.id)).operations.at(-1)).toMatchObject({
        status: 'uncertain',
        interruptedBy: 'cancel',
      });
      expect((await rowOf(store, next.id)).historyRunId).toBeNull();
    },
  );

  it('RUN-2: that result leaves the next run of the session as it was, which waits for a person meanwhile (B035)', async () => {
    const store = new MemoryRunStore();
    const started = signal();
    const release = signal();
    const script = ({ messages }: { messages: readonly unknown[] }) =>
      JSON.stringify(messages).includes('hello') ? { calls: [{ name: 'work' }] } : { calls: [{ name: 'gated' }] };
    const agents = () =>
      agent(scriptedModel([script], { place: 'transcript' }), [
        tool('work', () => (started.resolve(), release.promise.then(() => 'late')), { recovery: 'manual' }),
        tool('gated', () => 'never', { asks: () => ({}) }),
      ]);
    const owner = await engineOver(store, agents(), { pollMs: 600_000, pollIdleMs: 600_000 });
    const run = await owner.runs.start({ ...start, sessionId: 's' });
    await started.promise;
    const other = await engineOver(store, agents());
    await other.runs.cancel(run.id);
    const next = await other.runs.startAndWait({ ...start, prompt: 'next', sessionId: 's' });
    expect(next).toMatchObject({ status: 'waiting', interactions: [{ status: 'pending' }] });
    const state = async () => [
      await rowOf(store, next.id),
      await journalOf(store, next.id),
      await store.session('s'),
      (await other.runs.pendingInteractions({ runId: next.id })).interactions,
    ];
    const before = await state();
    release.resolve();
    await until(async () => (await journalOf(store, run.id)).at(-1)?.type === 'operation.late_result');
    expect(await state()).toEqual(before);
  });

  it('RUN-2: the late reply of a model is evidence too, and its tokens are counted nowhere', async () => {
    const store = new MemoryRunStore();
    const release = signal();
    const reply = {
      content: [{ type: 'text' as const, text: 'late' }],
      finishReason: 'stop' as const,
      usage: { totalTokens: 99 },
    };
    const asked = signal();
    const model = { name: 'deaf', generate: () => (asked.resolve(), release.promise.then(() => reply)) };
    const owner = await engineOver(store, agent(model));
    const run = await owner.runs.start(start);
    await asked.promise;
    await owner.runs.cancel(run.id);
    release.resolve();
    await until(async () => (await journalOf(store, run.id)).at(-1)?.type === 'operation.late_result');
    expect(await owner.runs.get(run.id)).toMatchObject({
      status: 'cancelled',
      usage: { totalTokens: 0, unknownCalls: 0 },
    });
  });

  it('RUN-2: evidence is offered again while the store does not answer', async () => {
    const store = new FailingStore(new MemoryRunStore());
    const started = signal();
    const release = signal();
    const owner = await engineOver(
      store,
      agent(scriptedModel([{ calls: [{ name: 'work' }] }]), [
        tool('work', () => (started.resolve(), release.promise.then(() => 'late'))),
      ]),
    );
    const run = await owner.runs.start(start);
    await started.promise;
    await owner.runs.cancel(run.id);
    store.fail('transition', { times: 2 });
    release.resolve();
    await until(async () => (await entriesOf(store.inner, run.id, 'operation.late_result')).length === 1);
    expect(owner.worker.status().state).toBe('ready');
  });

  it('RUN-2: a run is over for its session at once, whatever its tool still does', async () => {
    const store = new MemoryRunStore();
    const started = signal();
    const owner = await engineOver(
      store,
      agent(scriptedModel([{ calls: [{ name: 'work' }] }, { text: 'next' }]), [
        tool('work', () => (started.resolve(), new Promise(() => undefined))),
      ]),
    );
    const run = await owner.runs.start({ ...start, sessionId: 's' });
    await started.promise;
    const next = await owner.runs.start({ ...start, sessionId: 's', enqueue: true });
    await owner.runs.cancel(run.id);
    expect(await owner.runs.result(next.id)).toMatchObject({ status: 'completed' });
  });

  it('RUN-2: of cancel and completion at the same moment exactly one happens', async () => {
    for (let round = 0; round < 30; round++) {
      const store = new MemoryRunStore();
      const engine = await engineOver(store, agent(scriptedModel([{ text: 'done' }])));
      const run = await engine.runs.start(start);
      for (let turn = 0; turn < round; turn++) await Promise.resolve();
      const cancelled = await engine.runs.cancel(run.id).then(
        () => true,
        (error: { code: string }) => {
          expect(error.code).toBe('ILLEGAL_TRANSITION');
          return false;
        },
      );
      const ended = await engine.runs.result(run.id);
      expect(ended.status).toBe(cancelled ? 'cancelled' : 'completed');
      const settled = (await journalOf(store, run.id)).filter(({ type }) =>
        ['run.cancelled', 'run.completed'].includes(type),
      );
      expect(settled).toHaveLength(1);
      await engine.stop();
    }
  });

  it('RUN-1: a takeover that comes after the cancel finds nothing to take over (B160)', async () => {
    const store = new MemoryRunStore();
    const entered = signal();
    const deaf = tool('work', () => (entered.resolve(), new Promise(() => undefined)));
    const first = await mortalEngine(store, agent(scriptedModel([{ calls: [{ name: 'work' }] }]), [deaf]));
    const run = await first.runs.start(start);
    await entered.promise;
    await first.runs.cancel(run.id);
    const before = [await rowOf(store, run.id), await journalOf(store, run.id)];
    await first.crash();
    const second = await engineOver(store, agent(scriptedModel([{ text: 'never' }]), [tool('work', () => 'again')]));
    await second.recovery.reconcile();
    await second.worker.tick();
    expect([await rowOf(store, run.id), await journalOf(store, run.id)]).toEqual(before);
    expect(second.told).toEqual([]);
  });

  it('a detached rejection of a cancelled tool reaches no other run and no process handler (B102)', async () => {
    const unhandled: unknown[] = [];
    const onUnhandled = (error: unknown) => unhandled.push(error);
    process.on('unhandledRejection', onUnhandled);
    try {
      const store = new MemoryRunStore();
      const started = signal();
      const release = signal();
      const engine = await engineOver(
        store,
        agent(
          scriptedModel(
            [
              ({ messages }) =>
                JSON.stringify(messages).includes('other') ? { text: 'fine' } : { calls: [{ name: 'work' }] },
            ],
            {
              place: 'transcript',
            },
          ),
          [
            tool('work', () => {
              started.resolve();
              return release.promise.then(() => {
                throw new Error('after the cancel');
              });
            }),
          ],
        ),
      );
      const run = await engine.runs.start(start);
      await started.promise;
      await engine.runs.cancel(run.id);
      release.resolve();
      expect(await engine.runs.startAndWait({ ...start, prompt: 'other' })).toMatchObject({ output: 'fine' });
      await new Promise((resolve) => setTimeout(resolve, 5));
      expect(unhandled).toEqual([]);
    } finally {
      process.off('unhandledRejection', onUnhandled);
    }
  });
});
