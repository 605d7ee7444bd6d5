import { afterEach, describe, expect, it } from '@jest/globals';
import type { ProbeResult } from '../../lib/contracts/ports/tool-caller.port.js';
import type { RecoveryPolicy } from '../../lib/contracts/policies.js';
import type { Scripted } from '../../lib/model/scripted/script-step.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { mortalEngine } from '../support/crash.js';
import { agent, engineOver, entryTypes, stopEngines, tool, type ToolOptions } from '../support/engine-harness.js';
import { entriesOf, journalOf } from '../support/journal-of.js';
import { signal } from '../support/signal.js';
import { until } from '../support/until.js';

afterEach(stopEngines);

const start = { agent: 'support', prompt: 'hello' };
const script: Scripted[] = [{ calls: [{ name: 'work', args: { n: 1 } }] }, { text: 'done' }];

/** A run whose process is killed inside its tool `work`, after the effect; a new process then goes on. */
async function crashedInTool(
  recovery: RecoveryPolicy,
  second: ToolOptions & { current?: RecoveryPolicy | 'unregistered' } = {},
) {
  const store = new MemoryRunStore();
  const effects: { operationId: string; attempt: number }[] = [];
  const entered = signal();
  const first = await mortalEngine(
    store,
    agent(scriptedModel(script), [
      tool(
        'work',
        (_, { operationId, attempt }) => {
          effects.push({ operationId, attempt });
          entered.resolve();
          return new Promise(() => undefined);
        },
        { recovery },
      ),
    ]),
  );
  const run = await first.runs.start(start);
  await entered.promise;
  await first.crash();

  const { current = recovery, ...options } = second;
  const model = scriptedModel(script, { place: 'transcript' });
  const work = tool(
    'work',
    (_, { operationId, attempt }) => {
      effects.push({ operationId, attempt });
      return 'worked';
    },
    { ...options, recovery: current === 'unregistered' ? recovery : current },
  );
  const engine = await engineOver(store, agent(model, current === 'unregistered' ? [] : [work]));
  const ended = await engine.runs.result(run.id);
  return { store, engine, model, effects, ended, id: run.id };
}

describe('a process that dies in the middle of a tool', () => {
  it('JRN-5 manual: the call is never repeated; a person is asked, who settles it', async () => {
    const { ended, effects, engine, store, id, model } = await crashedInTool('manual');
    expect(ended).toMatchObject({
      status: 'needs_attention',
      attention: { reason: 'uncertain_outcome', operationKey: 'r1.m1.t0', detail: expect.stringContaining('work') },
    });
    expect(await entriesOf(store, id, 'tool.uncertain')).toMatchObject([
      { interruptedBy: 'crash', reportedToModel: false },
    ]);
    await engine.runs.resolveTool(id, { key: 'r1.m1.t0', output: { looked: 'up' }, by: 'ann' });
    expect(await engine.runs.result(id)).toMatchObject({ status: 'completed', output: 'done' });
    expect(model.requests[0]?.messages.at(-1)).toMatchObject({
      content: [{ outcome: 'success', output: { looked: 'up' } }],
    });
    expect(effects).toHaveLength(1);
  });

  it('JRN-5 inform: not repeated; the model is told that the outcome is unknown, and goes on', async () => {
    const { ended, effects, model } = await crashedInTool('inform');
    expect(ended.status).toBe('completed');
    expect(model.requests[0]?.messages.at(-1)).toMatchObject({ content: [{ outcome: 'unknown' }] });
    expect(effects).toHaveLength(1);
  });

  it.each(['safe', 'idempotent'] as const)(
    'JRN-5 %s: runs again under the same operation id, with the next attempt number',
    async (recovery) => {
      const { ended, effects, id } = await crashedInTool(recovery);
      expect(ended.status).toBe('completed');
      expect(effects).toEqual([
        { operationId: `${id}/r1.m1.t0`, attempt: 1 },
        { operationId: `${id}/r1.m1.t0`, attempt: 2 },
      ]);
    },
  );

  const probes: [what: string, answer: () => ProbeResult | Promise<ProbeResult>, status: string, effects: number][] = [
    ['it happened', () => ({ result: 'happened', output: 'found' }), 'completed', 1],
    ['it did not happen', () => ({ result: 'did-not-happen' }), 'completed', 2],
    ['nobody knows', () => ({ result: 'unknown' }), 'needs_attention', 1],
    ['nonsense', () => 'yes' as unknown as ProbeResult, 'needs_attention', 1],
    ['nothing', () => undefined as unknown as ProbeResult, 'needs_attention', 1],
    ['an error', () => Promise.reject(new Error('down')), 'needs_attention', 1],
    ['true', () => true as never, 'needs_attention', 1],
    ['it happened, without what', () => ({ result: 'happened' }) as never, 'needs_attention', 1],
    ['it did not, with a result', () => ({ result: 'did-not-happen', output: 1 }) as never, 'needs_attention', 1],
    ['it did not, with more', () => ({ result: 'did-not-happen', sure: false }) as never, 'needs_attention', 1],
    ['in a list', () => [{ result: 'did-not-happen' }] as never, 'needs_attention', 1],
    [
      'what cannot be read',
      () => Object.defineProperty({}, 'result', { enumerable: true, get: () => JSON.parse('{') as never }) as never,
      'needs_attention',
      1,
    ],
    ['a result without a JSON form', () => ({ result: 'happened', output: new Map() }), 'needs_attention', 1],
  ];

  it.each(probes)('JRN-5 probe: the tool is asked, and answers that %s', async (_, answer, status, count) => {
    const { ended, effects, model, store, id } = await crashedInTool('probe', { probe: answer });
    expect(ended.status).toBe(status);
    expect(effects).toHaveLength(count);
    expect(await entriesOf(store, id, 'tool.probed')).toHaveLength(1);
    if (status === 'completed')
      expect(model.requests[0]?.messages.at(-1)).toMatchObject({
        content: [{ output: count === 1 ? 'found' : 'worked' }],
      });
  });

  it('JRN-5 probe: is given the operation id and the arguments as they were', async () => {
    const asked: unknown[] = [];
    const { id } = await crashedInTool('probe', {
      probe: ({ operationId, arguments: args, attempt }) => {
        asked.push({ operationId, args, attempt });
        return { result: 'did-not-happen' };
      },
    });
    expect(asked).toEqual([{ operationId: `${id}/r1.m1.t0`, args: { n: 1 }, attempt: 1 }]);
  });

  it('JRN-5 probe: a result that does not fit the output schema is no answer', async () => {
    const { ended } = await crashedInTool('probe', {
      probe: () => ({ result: 'happened', output: 7 }),
      checkOutput: (output) => (typeof output === 'string' ? [] : ['must be text']),
    });
    expect(ended.status).toBe('needs_attention');
  });

  it('JRN-5 probe: without its method it is decided as manual', async () => {
    const { ended, effects } = await crashedInTool('probe');
    expect(ended.status).toBe('needs_attention');
    expect(effects).toHaveLength(1);
  });

  it.each([
    ['manual', 'safe'],
    ['manual', 'idempotent'],
    ['inform', 'safe'],
    ['safe', 'manual'],
    ['safe', 'inform'],
    ['idempotent', 'manual'],
  ] as const)('JRN-5: stored as %s and registered as %s now, the stricter one decides', async (stored, current) => {
    const { ended, effects } = await crashedInTool(stored, { current });
    const stricter = ['manual', 'inform'].find((policy) => policy === stored || policy === current);
    expect(ended.status).toBe(stricter === 'manual' ? 'needs_attention' : 'completed');
    expect(effects).toHaveLength(1);
  });

  it('JRN-5: a safe call whose tool is gone is answered so, and the run goes on', async () => {
    const { ended, model, effects } = await crashedInTool('safe', { current: 'unregistered' });
    expect(ended.status).toBe('completed');
    expect(model.requests[0]?.messages.at(-1)).toMatchObject({ content: [{ outcome: 'unknown_tool' }] });
    expect(effects).toHaveLength(1);
  });

  it('JRN-5: a manual call whose tool is gone still needs a person', async () => {
    expect((await crashedInTool('manual', { current: 'unregistered' })).ended.status).toBe('needs_attention');
  });
});

describe('a process that dies with several calls of one turn under way', () => {
  it('JRN-4: each is decided by itself: finished ones keep their result, the others go by their policy, in call order (B101)', async () => {
    const store = new MemoryRunStore();
    const names = ['finished', 'safe', 'manual', 'inform', 'late'];
    const calls: Scripted[] = [{ calls: names.map((name) => ({ name })) }, { text: 'done' }];
    const executed: string[] = [];
    const hang = () => new Promise(() => undefined);
    const tools = (second: boolean) => [
      tool('finished', () => (executed.push('finished'), 'kept'), { recovery: 'manual' }),
      tool('safe', () => (executed.push('safe'), second ? 'again' : hang())),
      tool('manual', () => (executed.push('manual'), second ? 'never' : hang()), { recovery: 'manual' }),
      tool('inform', () => (executed.push('inform'), second ? 'never' : hang()), { recovery: 'inform' }),
      tool('late', () => (executed.push('late'), 'ran'), { recovery: 'manual' }),
    ];
    // Three at a time: `finished` makes room for `inform`; `late` was never begun.
    const first = await mortalEngine(store, agent(scriptedModel(calls), tools(false), { toolConcurrency: 3 }));
    const run = await first.runs.start(start);
    await until(() => executed.length === 4);
    await first.crash();

    const model = scriptedModel(calls, { place: 'transcript' });
    const second = await engineOver(store, agent(model, tools(true), { toolConcurrency: 3 }));
    expect(await second.runs.result(run.id)).toMatchObject({
      status: 'needs_attention',
      attention: { operations: ['r1.m1.t2'] },
    });
    expect(executed.slice(4).sort()).toEqual(['late', 'safe']);
    await second.runs.resolveTool(run.id, { key: 'r1.m1.t2', output: 'settled', by: 'ann' });
    expect((await second.runs.result(run.id)).status).toBe('completed');
    expect(model.requests).toHaveLength(1);
    expect(model.requests[0]?.messages.at(-1)).toMatchObject({
      content: [
        { output: 'kept', outcome: 'success' },
        { output: 'again', outcome: 'success' },
        { output: 'settled', outcome: 'success' },
        { outcome: 'unknown' },
        { output: 'ran', outcome: 'success' },
      ],
    });
  });

  it('JRN-5a: a requested call without an intent is not uncertain: it runs, whatever its policy', async () => {
    const store = new MemoryRunStore();
    const executed: string[] = [];
    const entered = signal();
    const both = [{ calls: [{ name: 'one' }, { name: 'two' }] }, { text: 'done' }];
    const tools = (second: boolean) => [
      tool('one', () => (executed.push('one'), entered.resolve(), second ? 'one' : new Promise(() => undefined))),
      tool('two', () => (executed.push('two'), 'two'), { recovery: 'manual' }),
    ];
    const first = await mortalEngine(store, agent(scriptedModel(both), tools(false), { toolConcurrency: 1 }));
    const run = await first.runs.start(start);
    await entered.promise;
    await first.crash();
    const second = await engineOver(
      store,
      agent(scriptedModel(both, { place: 'transcript' }), tools(true), { toolConcurrency: 1 }),
    );
    expect((await second.runs.result(run.id)).status).toBe('completed');
    expect(executed).toEqual(['one', 'one', 'two']);
  });
});

describe('a process that dies elsewhere', () => {
  it('JRN-4: a completed operation is never executed again: the run goes on after its last commit (B005)', async () => {
    const store = new MemoryRunStore();
    const executed: number[] = [];
    const steps: Scripted[] = [1, 2, 3].map((n) => ({ calls: [{ name: 'work', args: { n } }] }));
    const work = tool('work', ({ n }) => (executed.push(n as number), n), { recovery: 'manual' });
    const reached = signal();
    const hanging = scriptedModel([...steps.slice(0, 2), () => (reached.resolve(), { hang: 'deaf' })]);
    const first = await mortalEngine(store, agent(hanging, [work]));
    const run = await first.runs.start(start);
    await reached.promise;
    await first.crash();
    const model = scriptedModel([...steps, { text: 'done' }], { place: 'transcript' });
    const second = await engineOver(store, agent(model, [work]));
    expect(await second.runs.result(run.id)).toMatchObject({ status: 'completed', turn: 4, attempt: 2 });
    expect(executed).toEqual([1, 2, 3]);
    expect(model.requests).toHaveLength(2);
    // What was begun and is sent again is the same request, byte for byte.
    expect(model.requests[0]?.messages).toEqual(hanging.requests[2]?.messages);
    expect(await entriesOf(store, run.id, 'run.resumed')).toMatchObject([
      { cause: 'recovered', previousOwner: first.worker.workerId, attempt: 2 },
    ]);
    expect(await entryTypes(second, run.id)).toContain('run.lease_expired');
  });

  it('JRN-5: an unanswered model call is sent again; usage counts the committed reply only', async () => {
    const store = new MemoryRunStore();
    const hanging = scriptedModel([{ hang: 'deaf' }]);
    const first = await mortalEngine(store, agent(hanging));
    const run = await first.runs.start(start);
    await hanging.requested(1);
    await first.crash();
    const second = await engineOver(store, agent(scriptedModel([{ text: 'done' }])));
    expect(await second.runs.result(run.id)).toMatchObject({
      status: 'completed',
      usage: { totalTokens: 15 },
      turn: 1,
    });
    expect(await entriesOf(store, run.id, 'model.started')).toMatchObject([{ attempt: 1 }, { attempt: 2 }]);
  });

  it('JRN-5: a turn whose request was cut leaves the turns before it as they were, and nothing is said twice (B029)', async () => {
    const store = new MemoryRunStore();
    const first = await mortalEngine(store, agent(scriptedModel([{ text: 'one' }])));
    const inSession = { ...start, sessionId: 's' };
    const before = await first.runs.startAndWait({ ...inSession, prompt: 'turn 1' });
    const told = await first.runs.messages(before.id);
    const cut = scriptedModel([{ hang: 'deaf' }]);
    const dying = await mortalEngine(store, agent(cut));
    await first.stop();
    const run = await dying.runs.start({ ...inSession, prompt: 'turn 2' });
    await cut.requested(1);
    await dying.crash();
    const model = scriptedModel([{ text: 'two' }]);
    const second = await engineOver(store, agent(model));
    expect((await second.runs.result(run.id)).output).toBe('two');
    expect(await second.runs.messages(before.id)).toEqual(told);
    expect((await second.runs.sessionMessages('s')).map(({ content }) => content)).toMatchObject(
      ['turn 1', 'one', 'turn 2', 'two'].map((text) => [{ text }]),
    );
    expect(model.requests[0]?.messages).toEqual(cut.requests[0]?.messages);
    expect(model.requests[0]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
  });

  it('I1: at whatever write the process dies, another one brings the run to its end, and no manual effect is doubled', async () => {
    for (let writes = 1; writes <= 12; writes++) {
      for (const after of [false, true]) {
        const store = new MemoryRunStore();
        let effects = 0;
        const steps: Scripted[] = [
          { calls: [{ name: 'work' }, { name: 'look' }] },
          { calls: [{ name: 'look' }] },
          { text: 'done' },
        ];
        const definition = () =>
          agent(scriptedModel(steps, { place: 'transcript' }), [
            tool('work', () => ++effects, { recovery: 'manual' }),
            tool('look', () => 'seen'),
          ]);
        const first = await mortalEngine(store, definition());
        const gate = first.connection.hold('append', { after, when: () => --left === 0 });
        let left = writes;
        const run = await first.runs.start({ ...start, runId: 'r' });
        const dies = gate.reached.then(() => true);
        const died = await Promise.race([dies, first.runs.result(run.id).then(() => false)]);
        if (!died) {
          await first.stop();
          continue;
        }
        await first.crash();
        const second = await engineOver(store, definition());
        const ended = await second.runs.result('r');
        expect(effects).toBeLessThanOrEqual(1);
        if (ended.status === 'needs_attention') {
          // Only between the intent of the manual call and its result.
          expect(ended.attention).toMatchObject({ reason: 'uncertain_outcome', operations: ['r1.m1.t0'] });
          await second.runs.resolveTool('r', { key: 'r1.m1.t0', output: 1, by: 'ann' });
        }
        expect((await second.runs.result('r')).status).toBe('completed');
        expect((await journalOf(store, 'r')).map(({ sequence }) => sequence)).toEqual(
          (await journalOf(store, 'r')).map((_, index) => index + 1),
        );
        await second.stop();
      }
    }
  }, 30_000);
});
