import { afterEach, describe, expect, it } from '@jest/globals';
import type { FinishReason } from '../../lib/contracts/journal-entry.js';
import type { JsonObject } from '../../lib/contracts/json.js';
import type { ToolResultPart } from '../../lib/contracts/message.js';
import type { Usage } from '../../lib/contracts/usage.js';
import { scriptedModel, type ScriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, stopEngines, tool, type ToolOptions } from '../support/engine-harness.js';
import { entriesOf } from '../support/journal-of.js';

afterEach(stopEngines);

const start = { agent: 'support', prompt: 'hello' };

/** The results that the last request carries. */
function results(model: ScriptedModel): ToolResultPart[] {
  return (model.requests.at(-1)?.messages ?? []).flatMap((message) => (message.role === 'tool' ? message.content : []));
}

/** A run whose tool `work` writes down what it was called with. */
async function over(model: ScriptedModel, options: ToolOptions = {}, definition = {}) {
  const executed: JsonObject[] = [];
  const store = new MemoryRunStore();
  const work = tool('work', (input) => (executed.push(input), { ok: true }), { recovery: 'manual', ...options });
  const engine = await engineOver(store, agent(model, [work], definition));
  return { store, engine, executed };
}

describe('the end of a reply', () => {
  const withCalls: [FinishReason, boolean][] = [
    ['stop', true],
    ['tool-calls', true],
    ['other', true],
    ['unknown', true],
    ['length', false],
    ['content-filter', false],
    ['refusal', false],
    ['error', false],
  ];

  it.each(withCalls)(
    'MOD-3: calls of a reply that ended with %s are executed: %s',
    async (finishReason, isExecuted) => {
      const model = scriptedModel([{ calls: [{ name: 'work' }], finishReason }, { text: 'done' }]);
      const { engine, executed } = await over(model);
      const run = await engine.runs.startAndWait(start);
      expect(executed).toHaveLength(isExecuted ? 1 : 0);
      expect(run.status).toBe(isExecuted ? 'completed' : 'failed');
      expect(model.requests).toHaveLength(isExecuted ? 2 : 1);
    },
  );

  const withoutCalls: [FinishReason, string, string | undefined][] = [
    ['stop', 'completed', undefined],
    ['tool-calls', 'completed', undefined],
    ['other', 'completed', undefined],
    ['unknown', 'completed', undefined],
    ['length', 'failed', 'OUTPUT_TRUNCATED'],
    ['refusal', 'failed', 'MODEL_REFUSED'],
    ['content-filter', 'failed', 'MODEL_REFUSED'],
    ['error', 'failed', 'MODEL_CALL_FAILED'],
  ];

  it.each(withoutCalls)(
    'MOD-3: a text that ended with %s → %s, and the text is kept (B086, B097)',
    async (finishReason, status, code) => {
      const model = scriptedModel([{ text: 'Let me check:', finishReason }]);
      const { engine } = await over(model);
      const run = await engine.runs.startAndWait(start);
      expect(run).toMatchObject({ status, output: 'Let me check:', usage: { totalTokens: 15 } });
      expect(run.error?.code).toBe(code);
      expect(model.requests).toHaveLength(1);
    },
  );

  it.each(['refusal', 'content-filter', 'length'] as const)(
    'MOD-3: nothing at all that ended with %s is no completed run',
    async (finishReason) => {
      const { engine } = await over(scriptedModel([{ finishReason }]));
      const run = await engine.runs.startAndWait(start);
      expect(run.status).toBe('failed');
      expect(run.output).toBeUndefined();
    },
  );

  it('MOD-3: reasoning alone with a refusal is a refusal', async () => {
    const model = scriptedModel([{ parts: [{ type: 'reasoning', text: 'hm' }], finishReason: 'refusal' }]);
    const { engine } = await over(model);
    expect(await engine.runs.startAndWait(start)).toMatchObject({ status: 'failed', error: { code: 'MODEL_REFUSED' } });
  });

  it('MOD-3: a complete call beside a cut one is not executed either (B085)', async () => {
    const model = scriptedModel([
      {
        calls: [
          { name: 'work', args: { path: '/tmp/a' } },
          { name: 'work', raw: '{"path":"/tmp/b","recursive":true' },
        ],
        finishReason: 'length',
      },
    ]);
    const { engine, executed, store } = await over(model);
    const run = await engine.runs.startAndWait(start);
    expect(run).toMatchObject({ status: 'failed', error: { code: 'OUTPUT_TRUNCATED' } });
    expect(executed).toEqual([]);
    expect(await entriesOf(store, run.id, 'tool.failed')).toMatchObject([
      { outcome: 'not_executed' },
      { outcome: 'not_executed' },
    ]);
    expect(await entriesOf(store, run.id, 'tool.started')).toEqual([]);
  });

  it("MOD-3: with truncatedCalls 'feedback' the model may go on, and is stopped when it does the same again (B084)", async () => {
    const cut = { calls: [{ name: 'work', raw: '{"a":' }], finishReason: 'length' as const };
    const goesOn = scriptedModel([cut, { text: 'done' }]);
    const first = await over(goesOn, {}, { truncatedCalls: 'feedback' });
    expect(await first.engine.runs.startAndWait(start)).toMatchObject({ status: 'completed' });
    expect(results(goesOn)).toMatchObject([
      { outcome: 'not_executed', output: expect.stringContaining('Not executed') },
    ]);

    const stubborn = scriptedModel([cut, cut, cut, cut, cut]);
    const second = await over(stubborn, {}, { truncatedCalls: 'feedback', maxTurns: 50 });
    expect(await second.engine.runs.startAndWait(start)).toMatchObject({
      status: 'failed',
      error: { code: 'OUTPUT_TRUNCATED' },
    });
    expect(stubborn.requests).toHaveLength(2);
    expect(second.executed).toEqual([]);
  });
});

describe('the calls of a reply', () => {
  const unknown = [
    'serch',
    'WORK',
    'work ',
    'ns.work',
    '',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'other_agents_tool',
  ];

  it.each(unknown)(
    'MOD-4: a call of %j is answered with the tools there are, and the run goes on (B100)',
    async (name) => {
      const model = scriptedModel([{ calls: [{ name }] }, { text: 'done' }]);
      const { engine, executed, store } = await over(model);
      const run = await engine.runs.startAndWait(start);
      expect(run.status).toBe('completed');
      expect(executed).toEqual([]);
      expect(results(model)).toMatchObject([{ outcome: 'unknown_tool', output: expect.stringContaining('work') }]);
      expect(await entriesOf(store, run.id, 'tool.failed')).toMatchObject([{ error: { code: 'UNKNOWN_TOOL' } }]);
    },
  );

  it('MOD-4: a tool of another agent in the same process is not reachable', async () => {
    const model = scriptedModel([{ calls: [{ name: 'secret' }] }, { text: 'done' }]);
    let called = false;
    const other = agent(scriptedModel([]), [tool('secret', () => (called = true))], { name: 'other' });
    const engine = await engineOver(new MemoryRunStore(), [agent(model, []), other]);
    await engine.runs.startAndWait(start);
    expect(called).toBe(false);
    expect(results(model)).toMatchObject([{ outcome: 'unknown_tool' }]);
  });

  it('MOD-4: mistakes are bounded by the turn limit', async () => {
    const model = scriptedModel(Array.from({ length: 9 }, () => ({ calls: [{ name: 'serch' }] })));
    const { engine } = await over(model, {}, { maxTurns: 4 });
    expect(await engine.runs.startAndWait(start)).toMatchObject({
      status: 'failed',
      error: { code: 'MAX_TURNS_EXCEEDED' },
      turn: 4,
    });
    expect(model.requests).toHaveLength(4);
  });

  const malformed = [
    '{"a":1',
    '{"a": "line\nbreak"}',
    '{"a": "quo"te"}',
    "{'a': 1}",
    '{"a": 1,}',
    '{"a": NaN}',
    '[1]',
    '"text"',
    'null',
    '7',
    '{}{}',
    '{"a":1e999}',
    '{"a": "\\U0001F600"}',
    '`x`',
  ];

  it.each(malformed)(
    'MOD-4: arguments %j are feedback, not a crash: the model may try again (B071, B072)',
    async (raw) => {
      const model = scriptedModel([
        { calls: [{ name: 'work', raw }] },
        { calls: [{ name: 'work', args: { a: 1 } }] },
        { text: 'done' },
      ]);
      const { engine, executed, store } = await over(model);
      const run = await engine.runs.startAndWait(start);
      expect(run).toMatchObject({ status: 'completed', turn: 3 });
      expect(executed).toEqual([{ a: 1 }]);
      const [failed] = await entriesOf(store, run.id, 'tool.failed');
      expect(failed).toMatchObject({ outcome: 'invalid_arguments', error: { code: 'INVALID_ARGUMENTS' } });
      // What goes back to the provider is an object; the raw text is kept for people.
      const [reply] = await entriesOf(store, run.id, 'model.completed');
      expect(reply?.message.content).toMatchObject([{ type: 'tool-call', rawArguments: raw }]);
      expect(reply?.message.content[0]).not.toHaveProperty('arguments');
    },
  );

  it.each(['', ' ', '\n'])('MOD-4: blank arguments %j of a tool without parameters are {} (B075)', async (raw) => {
    const { engine, executed } = await over(scriptedModel([{ calls: [{ name: 'work', raw }] }, { text: 'done' }]));
    expect((await engine.runs.startAndWait(start)).status).toBe('completed');
    expect(executed).toEqual([{}]);
  });

  it("MOD-4: arguments that violate the schema come back with the validator's words, without backoff (B074)", async () => {
    const model = scriptedModel([
      { calls: [{ name: 'work', args: {} }] },
      { calls: [{ name: 'work', args: {} }] },
      { calls: [{ name: 'work', args: { city: 'Paris' } }] },
      { text: 'done' },
    ]);
    const { engine, executed } = await over(model, {
      parse: (args) => ('city' in args ? { ok: true, input: args } : { ok: false, problems: ['city: is required'] }),
    });
    const run = await engine.runs.startAndWait(start);
    expect(run).toMatchObject({ status: 'completed', turn: 4, attempt: 1 });
    expect(executed).toEqual([{ city: 'Paris' }]);
    expect(JSON.stringify(model.requests[1]?.messages.at(-1))).toContain('city: is required');
  });

  it('MOD-4: a validator that throws refuses the call and harms nothing else', async () => {
    const model = scriptedModel([{ calls: [{ name: 'work' }] }, { text: 'done' }]);
    const { engine, executed } = await over(model, {
      parse: () => {
        throw new Error('validator broke');
      },
    });
    expect((await engine.runs.startAndWait(start)).status).toBe('completed');
    expect(executed).toEqual([]);
    expect(results(model)).toMatchObject([{ outcome: 'invalid_arguments' }]);
  });

  it('PPL-2: what is executed, shown and recorded are the validated arguments; what the model sees is what it said (B055)', async () => {
    const model = scriptedModel([{ calls: [{ name: 'work', args: { n: '7' } }] }, { text: 'done' }]);
    const { engine, executed, store } = await over(model, {
      parse: (args) => {
        // A validator that coerces in place.
        (args as { n: unknown }).n = Number(args.n);
        return { ok: true, input: { ...args, unit: 'km' } };
      },
    });
    const run = await engine.runs.startAndWait(start);
    expect(executed).toEqual([{ n: 7, unit: 'km' }]);
    const [reply] = await entriesOf(store, run.id, 'model.completed');
    expect(reply?.message.content).toMatchObject([{ arguments: { n: '7' } }]);
    expect(reply?.calls).toMatchObject([{ input: { n: 7, unit: 'km' } }]);
    expect(model.requests[1]?.messages[1]).toMatchObject({ content: [{ arguments: { n: '7' } }] });
  });

  it('PPL-2: a tool that changes its arguments changes nothing but its own copy', async () => {
    const model = scriptedModel([{ calls: [{ name: 'work', args: { list: [1] } }] }, { text: 'done' }]);
    const store = new MemoryRunStore();
    const work = tool('work', (input) => {
      (input.list as number[]).push(2);
      return 'ok';
    });
    const engine = await engineOver(store, agent(model, [work]));
    expect((await engine.runs.startAndWait(start)).status).toBe('completed');
    expect(model.requests[1]?.messages[1]).toMatchObject({ content: [{ arguments: { list: [1] } }] });
  });

  it('B110: __proto__ in arguments is an own key of a plain object for the tool, and changes no prototype', async () => {
    const raw = '{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"x":1}},"a":1,"a":2}';
    const { engine, executed } = await over(scriptedModel([{ calls: [{ name: 'work', raw }] }, { text: 'done' }]));
    expect((await engine.runs.startAndWait(start)).status).toBe('completed');
    expect(Object.keys(executed[0] ?? {})).toEqual(['__proto__', 'constructor', 'a']);
    expect((executed[0] as { isAdmin?: boolean }).isAdmin).toBeUndefined();
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
    expect(executed[0]?.a).toBe(2);
  });
});

describe('the ids of calls', () => {
  const sets: [what: string, ids: string[]][] = [
    ['repeated', ['x', 'x']],
    ['empty', ['', '']],
    ['the word for none', ['null', 'undefined', 'None', ' ']],
    ['lone surrogates', ['\ud83d', 'a\udd11']],
  ];

  it.each(sets)(
    'MOD-4: ids that are %s are made unique; each call is executed and answered once, in order (B078)',
    async (_, ids) => {
      const model = scriptedModel(
        [{ calls: ids.map((id, n) => ({ name: 'work', id, args: { n } })) }, { text: 'done' }],
        { strict: ['results', 'ids'] },
      );
      const { engine, executed } = await over(model);
      const run = await engine.runs.startAndWait(start);
      expect(run.status).toBe('completed');
      expect(executed).toEqual(ids.map((_id, n) => ({ n })));
      const given = results(model).map(({ callId }) => callId);
      expect(new Set(given).size).toBe(ids.length);
      const own = given.filter((id) => ids.includes(id));
      expect(own).toEqual(ids[0] === 'x' ? ['x'] : []);
      for (const id of given.slice(own.length)) expect(id).toMatch(/^[A-Za-z0-9]{9}$/);
    },
  );

  it('MOD-4: an id that its provider can tell from the others is kept, whatever it looks like (R212, R213)', async () => {
    const ids = ['a b', 'ü', 'functions.work:0', `call__thought__${'A1b+/'.repeat(900)}=`, '__proto__', 'constructor'];
    const model = scriptedModel([{ calls: ids.map((id, n) => ({ name: 'work', id, args: { n } })) }, { text: 'done' }]);
    const { engine } = await over(model);
    expect(await engine.runs.startAndWait(start)).toMatchObject({ status: 'completed' });
    expect(results(model).map(({ callId }) => callId)).toEqual(ids);
  });

  it('MOD-4: an id is used once in a transcript, also when the provider repeats it turn after turn (B077)', async () => {
    const call = (n: number) => ({ calls: [{ name: 'work', id: 'list_dir', args: { n } }] });
    const model = scriptedModel([call(1), call(2), call(3), { text: 'done' }]);
    const { engine, executed, store } = await over(model);
    const run = await engine.runs.startAndWait(start);
    expect(executed).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
    const replies = await entriesOf(store, run.id, 'model.completed');
    const calls = replies.flatMap(({ message }) =>
      message.content.flatMap((part) => (part.type === 'tool-call' ? [part] : [])),
    );
    expect(calls.map(({ callId }) => callId)[0]).toBe('list_dir');
    expect(new Set(calls.map(({ callId }) => callId)).size).toBe(3);
    expect(calls.map(({ originalCallId }) => originalCallId)).toEqual([undefined, 'list_dir', 'list_dir']);
  });

  it('JRN-6: the operation id is run and key, whatever the provider calls its calls', async () => {
    const seen: string[] = [];
    const model = scriptedModel([
      {
        calls: [
          { name: 'work', id: 'x' },
          { name: 'work', id: 'x' },
        ],
      },
      { text: 'done' },
    ]);
    const engine = await engineOver(
      new MemoryRunStore(),
      agent(model, [tool('work', (_, { operationId }) => (seen.push(operationId), null))]),
    );
    const run = await engine.runs.startAndWait(start);
    expect(seen).toEqual([`${run.id}/r1.m1.t0`, `${run.id}/r1.m1.t1`]);
  });
});

describe('the results of calls', () => {
  it('I5: each call has exactly one result, in call order, whatever order they end in and however they end (B023, B101)', async () => {
    const fails: Record<string, () => unknown> = {
      sync: () => {
        throw new Error('sync');
      },
      rejects: () => Promise.reject(new Error('rejects')),
      undef: () => Promise.reject(undefined),
      returns: () => 'returned',
      later: () => new Promise((resolve) => setImmediate(() => setImmediate(() => resolve('later')))),
    };
    const model = scriptedModel([{ calls: Object.keys(fails).map((name) => ({ name })) }, { text: 'done' }]);
    const store = new MemoryRunStore();
    const engine = await engineOver(
      store,
      agent(
        model,
        Object.entries(fails).map(([name, run]) => tool(name, run)),
      ),
    );
    const run = await engine.runs.startAndWait(start);
    expect(run.status).toBe('completed');
    expect(results(model)).toMatchObject([
      { name: 'sync', outcome: 'error', output: 'sync' },
      { name: 'rejects', outcome: 'error', output: 'rejects' },
      { name: 'undef', outcome: 'error', output: expect.stringMatching(/./) },
      { name: 'returns', outcome: 'success', output: 'returned' },
      { name: 'later', outcome: 'success', output: 'later' },
    ]);
  });

  it('I5: twenty calls that end at once lose nothing (B023)', async () => {
    const model = scriptedModel([
      { calls: Array.from({ length: 20 }, (_, n) => ({ name: 'work', args: { n } })) },
      { text: 'done' },
    ]);
    const store = new MemoryRunStore();
    const engine = await engineOver(store, agent(model, [tool('work', ({ n }) => n)], { toolConcurrency: 20 }));
    const run = await engine.runs.startAndWait(start);
    expect(results(model).map(({ output }) => output)).toEqual(Array.from({ length: 20 }, (_, n) => n));
    expect(await entriesOf(store, run.id, 'tool.completed')).toHaveLength(20);
    expect(model.requests).toHaveLength(2);
  });

  it('JRN-5a: toolConcurrency 1 is the order of the model, one at a time', async () => {
    let active = 0;
    const order: unknown[] = [];
    const model = scriptedModel([
      { calls: Array.from({ length: 5 }, (_, n) => ({ name: 'work', args: { n } })) },
      { text: 'done' },
    ]);
    const work = tool('work', async ({ n }) => {
      expect(++active).toBe(1);
      order.push(n);
      await new Promise((resolve) => setImmediate(resolve));
      active--;
    });
    const engine = await engineOver(new MemoryRunStore(), agent(model, [work], { toolConcurrency: 1 }));
    expect((await engine.runs.startAndWait(start)).status).toBe('completed');
    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  it('CFG-9: a guard that refuses is a denial the model is told of; a pipe that refuses is about the arguments', async () => {
    const { ToolDeniedError } = await import('../../lib/errors/run/tool-denied.error.js');
    const { InvalidToolArgumentsError } = await import('../../lib/errors/run/invalid-tool-arguments.error.js');
    const refusing = (name: string, error: Error) => {
      const made = tool(name, () => 'never');
      return { ...made, caller: { ...made.caller, call: () => Promise.reject(error) } };
    };
    const model = scriptedModel([{ calls: [{ name: 'guarded' }, { name: 'piped' }] }, { text: 'done' }]);
    const engine = await engineOver(
      new MemoryRunStore(),
      agent(model, [
        refusing('guarded', new ToolDeniedError('not for you')),
        refusing('piped', new InvalidToolArgumentsError('n must be a number')),
      ]),
    );
    expect((await engine.runs.startAndWait(start)).status).toBe('completed');
    expect(results(model)).toMatchObject([
      { outcome: 'denied', output: expect.stringContaining('not for you') },
      { outcome: 'invalid_arguments', output: expect.stringContaining('n must be a number') },
    ]);
  });

  it('MOD-9: parts that a provider executed itself are kept as they are, run by nobody, and owe no result', async () => {
    const opaque = {
      type: 'opaque' as const,
      value: { type: 'server_tool_use', id: 'srv_1', name: 'work', input: {} },
    };
    const model = scriptedModel([{ parts: [opaque], calls: [{ name: 'work' }] }, { text: 'done' }]);
    const { engine, executed } = await over(model);
    expect((await engine.runs.startAndWait(start)).status).toBe('completed');
    expect(executed).toHaveLength(1);
    expect(model.requests[1]?.messages[1]).toMatchObject({ content: [opaque, { type: 'tool-call' }] });
  });
});

describe('a model client of the host', () => {
  const nonsense: [what: string, reply: unknown][] = [
    ['nothing', undefined],
    ['null', null],
    ['text', 'hello'],
    ['no content', { finishReason: 'stop', usage: {} }],
    ['no finish reason', { content: [], usage: {} }],
    ['a part that is null', { content: [null], finishReason: 'stop', usage: {} }],
    [
      'a call without arguments',
      { content: [{ type: 'tool-call', callId: 'x', name: 'work' }], finishReason: 'tool-calls', usage: {} },
    ],
  ];

  it.each(nonsense)('MOD-1: that returns %s has failed its request, for good', async (_, reply) => {
    const model = { name: 'own', generate: () => Promise.resolve(reply as never) };
    const engine = await engineOver(new MemoryRunStore(), agent(model));
    expect(await engine.runs.startAndWait(start)).toMatchObject({
      status: 'failed',
      error: { code: 'MODEL_CALL_FAILED', message: expect.stringContaining('own') },
    });
    expect(engine.worker.status().state).toBe('ready');
  });

  it('MOD-1: may leave the usage out, and may throw at once', async () => {
    const silent = {
      name: 'own',
      generate: () => Promise.resolve({ content: [{ type: 'text', text: 'hi' }], finishReason: 'stop' } as never),
    };
    const first = await engineOver(new MemoryRunStore(), agent(silent));
    expect(await first.runs.startAndWait(start)).toMatchObject({ status: 'completed', usage: { unknownCalls: 1 } });
    const throwing = {
      name: 'own',
      generate: () => {
        throw new Error('at once');
      },
    };
    const second = await engineOver(new MemoryRunStore(), agent(throwing));
    expect(await second.runs.startAndWait(start)).toMatchObject({ status: 'failed', error: { message: 'at once' } });
  });
});

describe('the usage of replies', () => {
  const odd: [what: string, usage: unknown, total: number, unknownCalls: number][] = [
    ['nothing', null, 0, 1],
    ['an empty object', {}, 0, 1],
    ['a total only', { totalTokens: 12 }, 12, 0],
    ['no total, but both parts', { inputTokens: 10, outputTokens: 5 }, 15, 0],
    ['one part only', { inputTokens: 10 }, 0, 1],
    ['not-a-number', { inputTokens: Number.NaN, outputTokens: 5, totalTokens: Number.NaN }, 0, 1],
    ['infinite', { totalTokens: Number.POSITIVE_INFINITY }, 0, 1],
    ['negative', { totalTokens: -5, inputTokens: -10 }, 0, 1],
    ['text', { totalTokens: '12', inputTokens: '10' }, 0, 1],
  ];

  it.each(odd)(
    'MOD-5: a reply whose usage is %s keeps the totals finite and says what is unknown (B093)',
    async (_, usage, total, unknownCalls) => {
      const model = scriptedModel([{ text: 'done', usage: usage as Usage | null }]);
      const { engine, store } = await over(model);
      const run = await engine.runs.startAndWait(start);
      expect(run).toMatchObject({ status: 'completed', usage: { totalTokens: total, unknownCalls } });
      for (const number of Object.values(run.usage)) expect(number).toBeGreaterThanOrEqual(0);
      // The same after a restart: nothing was stored that reads back as another value.
      const fresh = await engineOver(store, agent(scriptedModel([])), { worker: false });
      expect((await fresh.runs.snapshot(run.id)).run.usage).toEqual(run.usage);
    },
  );

  it('I9: totals are the sums of the replies that were committed', async () => {
    const model = scriptedModel([
      {
        calls: [{ name: 'work' }],
        usage: { inputTokens: 10, cachedInputTokens: 4, outputTokens: 5, reasoningTokens: 2, totalTokens: 15 },
      },
      { text: 'done', usage: { inputTokens: 20, outputTokens: 1, totalTokens: 21 }, fail: { status: 503 } },
    ]);
    const { engine } = await over(model);
    expect((await engine.runs.startAndWait(start)).usage).toEqual({
      inputTokens: 30,
      cachedInputTokens: 4,
      outputTokens: 6,
      reasoningTokens: 2,
      totalTokens: 36,
      unknownCalls: 0,
    });
  });
});
