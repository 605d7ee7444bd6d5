import { afterEach, describe, expect, it } from '@jest/globals';
import type { FinishReason } from '../../lib/contracts/journal-entry.js';
import type { JsonObject } from '../../lib/contracts/json.js';
import type { ToolResultPart } from '../../lib/contracts/message.js';
import type { Usage } from '../../lib/contracts/operation.js';
import { ModelCallError } from '../../lib/errors/run.errors.js';
import type { Scripted } from '../../lib/model/scripted/script-step.js';
import { scriptedModel, type ScriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, stopEngines, tool, type ToolOptions } from '../support/engine-harness.js';
import { entriesOf } from '../support/journal-of.js';
import { signal } from '../support/signal.js';

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
  const endings: [FinishReason, 'good' | 'repeated' | string][] = [
    ['stop', 'good'],
    ['tool-calls', 'good'],
    ['error', 'repeated'],
    ['other', 'repeated'],
    ['unknown', 'repeated'],
    ['network_error' as FinishReason, 'repeated'],
    ['constructor' as FinishReason, 'repeated'],
    ['length', 'OUTPUT_TRUNCATED'],
    ['content-filter', 'MODEL_REFUSED'],
    ['refusal', 'MODEL_REFUSED'],
  ];

  it.each(endings)('MOD-3: calls of a reply that ended with %s: %s', async (finishReason, expected) => {
    const bad = { calls: [{ name: 'work' }], text: 'Half an ans', finishReason };
    const model = scriptedModel([bad, { text: 'done' }]);
    const { engine, executed, store } = await over(model);
    const run = await engine.runs.startAndWait(start);
    expect(executed).toHaveLength(expected === 'good' ? 1 : 0);
    expect(model.requests).toHaveLength(expected === 'good' || expected === 'repeated' ? 2 : 1);
    if (expected === 'good') return expect(run).toMatchObject({ status: 'completed', output: 'done' });
    const [failed] = await entriesOf(store, run.id, 'model.attempt_failed');
    expect(failed).toMatchObject({ key: 'r1.m1', attempt: 1, usage: { totalTokens: 15 } });
    // What it cost and how it ended reach observers, what it said does not.
    const told = engine.told.find(({ type }) => type === 'model.attempt_failed');
    expect(told?.details).toMatchObject({ totalTokens: 15, finishReason: failed?.finishReason });
    expect(JSON.stringify(told)).not.toContain('Half an ans');
    // The tokens of the reply that was not used were spent all the same.
    expect(run.usage.totalTokens).toBe(expected === 'repeated' ? 30 : 15);
    if (expected === 'repeated') {
      expect(run).toMatchObject({ status: 'completed', output: 'done', turn: 1 });
      expect(failed?.error.message).toContain(finishReason);
      // The same request again: nothing of the bad reply is in it.
      expect(model.requests[1]?.messages).toEqual(model.requests[0]?.messages);
      const { operations } = await engine.runs.snapshot(run.id);
      expect(operations).toMatchObject([{ key: 'r1.m1', status: 'completed', usage: { totalTokens: 30 } }]);
    } else {
      expect(run).toMatchObject({ status: 'failed', output: 'Half an ans', error: { code: expected } });
      expect((await engine.runs.snapshot(run.id)).operations).toMatchObject([{ key: 'r1.m1', status: 'failed' }]);
    }
  });

  it('MOD-3: half an answer is never the output, however often it comes', async () => {
    const model = scriptedModel(Array.from({ length: 9 }, () => ({ text: 'Half an ans', finishReason: 'error' })));
    const { engine } = await over(model);
    const run = await engine.runs.startAndWait(start);
    expect(run).toMatchObject({ status: 'failed', error: { code: 'MODEL_RETRIES_EXHAUSTED' } });
    expect(run.output).toBeUndefined();
    expect(model.requests).toHaveLength(3);
    expect(run.usage.totalTokens).toBe(45);
  });

  it('MOD-3: tool calls that are announced and not there are a failed attempt', async () => {
    const { engine } = await over(
      scriptedModel([{ text: 'I look it up', finishReason: 'tool-calls' }, { text: 'done' }]),
    );
    expect(await engine.runs.startAndWait(start)).toMatchObject({ status: 'completed', output: 'done' });
  });

  describe('with nothing in it', () => {
    const empty = { finishReason: 'stop' as const };
    const reasoning = { ...empty, parts: [{ type: 'reasoning' as const, text: 'hm' }] };
    const work = { calls: [{ name: 'work' }] };

    it.each<[string, Scripted]>([
      ['nothing', empty],
      ['reasoning alone', reasoning],
      ['blank text', { ...empty, text: ' \n' }],
      ['nothing, without usage', { ...empty, usage: null }],
    ])('R206: %s is no answer to a person: it is asked again', async (_, reply) => {
      const model = scriptedModel([reply, { text: 'done' }]);
      const { engine, store } = await over(model);
      const run = await engine.runs.startAndWait(start);
      expect(run).toMatchObject({ status: 'completed', output: 'done', turn: 1 });
      const [failed] = await entriesOf(store, run.id, 'model.attempt_failed');
      expect(failed?.error).toMatchObject({ code: 'MODEL_CALL_FAILED', retryable: true });
      expect(failed?.error.message).toContain('allowEmptyAnswer');
    });

    it('R206: after tools a model may have nothing to add; the run completes without an output', async () => {
      const model = scriptedModel([work, empty]);
      const run = await (await over(model)).engine.runs.startAndWait(start);
      expect(run.status).toBe('completed');
      expect(run).not.toHaveProperty('output');
      expect(model.requests).toHaveLength(2);
    });

    it('R206: after tools too, a reply that cost nothing was never generated', async () => {
      const model = scriptedModel([work, { ...empty, usage: null }, { text: 'done' }]);
      expect(await (await over(model)).engine.runs.startAndWait(start)).toMatchObject({ output: 'done', turn: 2 });
    });

    it('R206: is the answer of an agent with allowEmptyAnswer', async () => {
      const model = scriptedModel([{ ...empty, usage: null }]);
      const { engine } = await over(model, {}, { allowEmptyAnswer: true });
      expect(await engine.runs.startAndWait(start)).toMatchObject({ status: 'completed', output: '' });
    });
  });

  describe('that pauses its turn', () => {
    const search = { type: 'opaque' as const, value: { type: 'server_tool_use', id: 'srv_1' } };
    const paused = { parts: [search], text: 'Searching', finishReason: 'pause' as const };

    it('R208: is sent back as it is, and counts as a turn', async () => {
      const model = scriptedModel([paused, { text: 'Found.' }]);
      const run = await (await over(model)).engine.runs.startAndWait(start);
      expect(run).toMatchObject({ status: 'completed', output: 'Found.', turn: 2, usage: { totalTokens: 30 } });
      expect(model.requests[1]?.messages.slice(1)).toMatchObject([
        { role: 'assistant', content: [search, { type: 'text', text: 'Searching' }] },
      ]);
    });

    it('MOD-4: never has its calls executed, and each is answered', async () => {
      const model = scriptedModel([{ ...paused, calls: [{ name: 'work' }] }, { text: 'Found.' }]);
      const { engine, executed } = await over(model);
      expect((await engine.runs.startAndWait(start)).status).toBe('completed');
      expect(executed).toEqual([]);
      expect(results(model)).toMatchObject([{ outcome: 'not_executed' }]);
    });

    it('is bounded by the turn limit, and with nothing in it is a failed attempt', async () => {
      const always = scriptedModel(Array.from({ length: 9 }, () => paused));
      const first = await over(always, {}, { maxTurns: 4 });
      expect(await first.engine.runs.startAndWait(start)).toMatchObject({ error: { code: 'MAX_TURNS_EXCEEDED' } });
      expect(always.requests).toHaveLength(4);
      const silent = scriptedModel([{ finishReason: 'pause' }, { text: 'done' }]);
      expect(await (await over(silent)).engine.runs.startAndWait(start)).toMatchObject({ output: 'done', turn: 1 });
    });

    it('STR-1: takes steering in when the turn is over', async () => {
      const goOn = signal();
      const model = scriptedModel([{ ...paused, after: goOn.promise }, { text: 'Found.' }, { text: 'Also found.' }]);
      const { engine } = await over(model);
      const run = await engine.runs.start(start);
      await model.requested(1);
      await engine.runs.steer(run.id, 'look at b too', { sender: 'ann' });
      goOn.resolve();
      expect(await engine.runs.result(run.id)).toMatchObject({ output: 'Also found.', turn: 3 });
      expect(model.requests[1]?.messages.at(-1)?.role).toBe('assistant');
      expect(model.requests[2]?.messages.at(-1)).toMatchObject({ role: 'user', kind: 'steering' });
    });
  });

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
    expect(await entriesOf(store, run.id, 'model.attempt_failed')).toMatchObject([{ finishReason: 'length' }]);
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
    const { ToolDeniedError } = await import('../../lib/errors/run.errors.js');
    const { InvalidToolArgumentsError } = await import('../../lib/errors/run.errors.js');
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
  const stop = (...content: unknown[]) => ({ content, finishReason: 'stop', usage: {} });
  const circle: Record<string, unknown> = { type: 'opaque' };
  circle.value = circle;
  const nested = (levels: number) => Array.from({ length: levels }).reduce<unknown>((inner) => [inner], 1);
  const nonsense: [what: string, reply: unknown, field: string][] = [
    ['nothing', undefined, 'content'],
    ['null', null, 'content'],
    ['text', 'hello', 'content'],
    ['no content', { finishReason: 'stop', usage: {} }, 'content'],
    ['no finish reason', { content: [], usage: {} }, 'finishReason'],
    ['a finish reason that is null', { content: [], finishReason: null, usage: {} }, 'finishReason'],
    ['a part that is null', stop(null), 'content[0]'],
    ['a part of an unknown type', stop({ type: 'txt', text: 'hi' }), 'content[0].type'],
    ['a part of an inherited type', stop({ type: 'constructor' }), 'content[0].type'],
    ['a text that is none', stop({ type: 'text', text: 'hi' }, { type: 'text' }), 'content[1].text'],
    ['reasoning that is a number', stop({ type: 'reasoning', text: 7 }), 'content[0].text'],
    ['a file of no kind', stop({ type: 'file', data: 'AAEC' }), 'content[0].mediaType'],
    ['a file in bytes', stop({ type: 'file', mediaType: 'image/png', data: new Uint8Array(3) }), 'content[0]'],
    ['a file twice', stop({ type: 'file', mediaType: 'a/b', data: 'AAEC', url: 'https://h.example' }), 'content[0]'],
    ['an opaque part of nothing', stop({ type: 'opaque' }), 'content[0].value'],
    ['options that are text', stop({ type: 'text', text: 'a', providerOptions: 'b' }), 'content[0].providerOptions'],
    ['a number beyond JSON', stop({ type: 'opaque', value: 5n }), 'JSON'],
    ['a circle', stop(circle), 'JSON'],
    ['a part of 4,000 levels', stop({ type: 'opaque', value: nested(4_000) }), 'deeper'],
    ['a part of 100,000 levels', stop({ type: 'opaque', value: nested(100_000) }), 'JSON'],
    ['a getter that throws', { get content() { throw new Error('no'); }, finishReason: 'stop' }, 'JSON'], // prettier-ignore
    ['a call without arguments', stop({ type: 'tool-call', callId: 'x', name: 'work' }), 'content[0].argumentsText'],
    ['a call without a name', stop({ type: 'tool-call', callId: 'x', argumentsText: '{}' }), 'content[0].name'],
  ];

  it.each(nonsense)(
    'MOD-1: that returns %s has failed its request, for good, and is told which field',
    async (_, reply, field) => {
      const model = { name: 'own', generate: () => Promise.resolve(reply as never) };
      const store = new MemoryRunStore();
      const engine = await engineOver(store, agent(model));
      const run = await engine.runs.startAndWait(start);
      expect(run).toMatchObject({ status: 'failed', error: { code: 'MODEL_CALL_FAILED' } });
      expect(run.error?.message).toContain('own returned what is no reply');
      expect(run.error?.message).toContain(field);
      expect(await entriesOf(store, run.id, 'model.started')).toHaveLength(1);
      expect(engine.worker.status().state).toBe('ready');
    },
  );

  it('MOD-1: keeps nothing of the reply that it could change later', async () => {
    const part = { type: 'text' as const, text: 'said' };
    const model = {
      name: 'own',
      generate: () => {
        setImmediate(() => (part.text = 'never said'));
        return Promise.resolve({ content: [part], finishReason: 'stop' as const, usage: {} });
      },
    };
    const engine = await engineOver(new MemoryRunStore(), agent(model));
    expect(await engine.runs.startAndWait(start)).toMatchObject({ output: 'said' });
  });

  it.each<[string, unknown]>([
    ['a status beyond JSON', { status: 5n }],
    ['a status that is text', { status: 'busy' }],
    ['a status that is a function', { status: () => 1 }],
    ['a delay that is no number', { retryAfterMs: 'soon' }],
    ['a delay of NaN', { retryAfterMs: Number.NaN }],
    ['a delay before now', { retryAfterMs: -5 }],
    ['a delay beyond JSON', { retryAfterMs: 5n }],
  ])('MOD-2: that fails with %s is asked as often as the policy allows, and no oftener', async (_, facts) => {
    let requests = 0;
    const model = {
      name: 'own',
      generate: () => (
        requests++,
        Promise.reject(new ModelCallError('busy', { retryable: true, ...(facts as object) }))
      ),
    };
    const engine = await engineOver(new MemoryRunStore(), agent(model));
    expect(await engine.runs.startAndWait(start)).toMatchObject({
      status: 'failed',
      error: { code: 'MODEL_RETRIES_EXHAUSTED', message: 'The model call failed 3 times: busy' },
    });
    expect(requests).toBe(3);
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
