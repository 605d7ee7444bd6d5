import { afterEach, describe, expect, it } from '@jest/globals';
import type { StartOptions } from '../../lib/contracts/run-requests.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, stopEngines, tool } from '../support/engine-harness.js';
import { FailingStore } from '../support/failing-store.js';
import { journalOf, rowOf } from '../support/journal-of.js';
import { signal } from '../support/signal.js';

afterEach(stopEngines);

/** A process that starts and reads, and never claims. */
async function reader(store = new MemoryRunStore(), options = {}) {
  return engineOver(store, [agent(scriptedModel([])), agent(scriptedModel([]), [], { name: 'other' })], {
    worker: false,
    ...options,
  });
}

const start: StartOptions = { agent: 'support', prompt: 'hello' };

describe('submitting a run', () => {
  it('SUB-1: commits the run and its entry before any work, and answers with it', async () => {
    const store = new MemoryRunStore();
    const engine = await reader(store);
    const run = await engine.runs.start({ ...start, metadata: { tenant: 't-1', urgent: true, rank: 2 } });
    expect(run).toMatchObject({
      status: 'pending',
      phase: 'active',
      attempt: 0,
      sequence: 1,
      turn: 0,
      agent: 'support',
    });
    expect(await rowOf(store, run.id)).toMatchObject({ metadata: { tenant: 't-1', urgent: true, rank: 2 } });
    expect(await journalOf(store, run.id)).toMatchObject([
      { type: 'run.submitted', messages: [{ role: 'user', content: [{ type: 'text', text: 'hello' }] }] },
    ]);
  });

  it('SUB-1: in a process with a free slot the run is started inline: one commit, and the model is called right after it', async () => {
    const store = new FailingStore(new MemoryRunStore());
    const model = scriptedModel([{ hang: true }]);
    const engine = await engineOver(store, agent(model));
    const run = await engine.runs.start(start);
    await model.requested(1);
    expect(run).toMatchObject({ status: 'running', attempt: 1, sequence: 3, turn: 1 });
    expect([store.count('create'), store.count('append'), store.count('transition')]).toEqual([1, 0, 0]);
    await engine.runs.cancel(run.id);
  });

  it('SUB-1: when the commit fails nothing is there, nothing was called, and the caller learns it', async () => {
    const store = new FailingStore(new MemoryRunStore());
    const model = scriptedModel([{ text: 'done' }]);
    const engine = await engineOver(store, agent(model));
    store.fail('create');
    await expect(engine.runs.start({ ...start, runId: 'r-1' })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retryable: true,
    });
    await expect(engine.runs.get('r-1')).rejects.toMatchObject({ code: 'RUN_NOT_FOUND' });
    expect(model.requests).toEqual([]);
  });

  describe('with a request id', () => {
    it('SUB-2: the same request again is the same run, marked as such, however its keys are ordered', async () => {
      const engine = await reader();
      const first = await engine.runs.start({ agent: 'support', requestId: 'q', sessionId: 's', prompt: 'hello' });
      const again = await engine.runs.start({ prompt: 'hello', sessionId: 's', requestId: 'q', agent: 'support' });
      expect(first.deduplicated).toBeUndefined();
      expect(again).toMatchObject({ id: first.id, deduplicated: true });
      expect((await engine.runs.list()).runs).toHaveLength(1);
    });

    it('SUB-2: agent and input make a request equal; key order inside messages does not make it another one', async () => {
      const engine = await reader();
      const options = (providerOptions: object) =>
        ({
          agent: 'support',
          requestId: 'q',
          messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', providerOptions }] }],
        }) as unknown as StartOptions;
      const first = await engine.runs.start(options({ a: 1, b: { c: 2, d: 3 } }));
      const again = await engine.runs.start(options({ b: { d: 3, c: 2 }, a: 1 }));
      expect(again.id).toBe(first.id);
      await expect(engine.runs.start(options({ a: 1, b: { c: 2, d: 4 } }))).rejects.toMatchObject({
        code: 'REQUEST_CONFLICT',
      });
    });

    it('SUB-2: metadata, budget and deadline are no input: a repetition that differs in them is still the first run', async () => {
      const engine = await reader();
      const first = await engine.runs.start({ ...start, requestId: 'q', metadata: { a: 1 } });
      const again = await engine.runs.start({
        ...start,
        requestId: 'q',
        metadata: { a: 2 },
        budget: { maxTotalTokens: 5 },
        deadline: new Date(Date.now() + 60_000),
      });
      expect(again).toMatchObject({ id: first.id, metadata: { a: 1 } });
      expect(again.budget).toBeUndefined();
    });

    it('SUB-2: another input under the same id is a conflict that names the run, and writes nothing', async () => {
      const engine = await reader();
      const first = await engine.runs.start({ ...start, requestId: 'q', sessionId: 's' });
      const differing: StartOptions[] = [
        { ...start, requestId: 'q', sessionId: 's', prompt: 'hello!' },
        { ...start, requestId: 'q', sessionId: 's', agent: 'other' },
      ];
      for (const options of differing) {
        await expect(engine.runs.start(options)).rejects.toMatchObject({
          code: 'REQUEST_CONFLICT',
          details: { runId: first.id },
        });
      }
      expect((await engine.runs.list()).runs).toHaveLength(1);
    });

    it('SUB-2: is unique per session, and per agent without one', async () => {
      const engine = await reader();
      const runs = await Promise.all([
        engine.runs.start({ ...start, requestId: 'q' }),
        engine.runs.start({ ...start, requestId: 'q', agent: 'other' }),
        engine.runs.start({ ...start, requestId: 'q', sessionId: 's-1' }),
        engine.runs.start({ ...start, requestId: 'q', sessionId: 's-2' }),
        // Ids are compared exactly: these are other sessions (B129).
        engine.runs.start({ ...start, requestId: 'q', sessionId: 'S-1' }),
        engine.runs.start({ ...start, requestId: 'Q', sessionId: 's-3' }),
      ]);
      expect(new Set(runs.map(({ id }) => id)).size).toBe(6);
      expect((await engine.runs.start({ ...start, requestId: 'q', agent: 'other' })).id).toBe(runs[1]?.id);
    });

    it('SUB-2: twenty equal requests at once make one run', async () => {
      const engine = await reader();
      const runs = await Promise.all(
        Array.from({ length: 20 }, () => engine.runs.start({ ...start, requestId: 'q', sessionId: 's' })),
      );
      expect(new Set(runs.map(({ id }) => id)).size).toBe(1);
      expect(runs.filter(({ deduplicated }) => !deduplicated)).toHaveLength(1);
    });

    it('SUB-2: is answered with the first run also when admission is full, and after that run is settled', async () => {
      const engine = await reader(new MemoryRunStore(), { maxPendingRuns: 1 });
      const first = await engine.runs.start({ ...start, requestId: 'q' });
      await expect(engine.runs.start(start)).rejects.toMatchObject({ code: 'TOO_MANY_PENDING' });
      expect((await engine.runs.start({ ...start, requestId: 'q' })).id).toBe(first.id);
      await engine.runs.cancel(first.id);
      expect(await engine.runs.start({ ...start, requestId: 'q' })).toMatchObject({
        id: first.id,
        status: 'cancelled',
      });
    });

    it('SUB-2: stands for its run whatever became of it, and nothing is executed again (B156)', async () => {
      const store = new MemoryRunStore();
      const model = scriptedModel([{ text: 'done' }, { fail: { status: 400 }, text: 'after a retry' }]);
      const engine = await engineOver(store, agent(model));
      const requests = ['completed', 'failed', 'cancelled'].map((requestId) => ({ ...start, requestId }));
      const [completed, failed] = [
        await engine.runs.startAndWait(requests[0]!),
        await engine.runs.startAndWait(requests[1]!),
      ];
      engine.worker.pause();
      const { id } = await engine.runs.start(requests[2]!);
      const cancelled = await engine.runs.cancel(id);
      engine.worker.resume();
      for (const [n, run] of [completed, failed, cancelled].entries()) {
        expect(run.status).toBe(requests[n]!.requestId);
        expect(await engine.runs.start(requests[n]!)).toEqual({ ...run, deduplicated: true });
        await expect(engine.runs.start({ ...requests[n]!, prompt: 'other' })).rejects.toMatchObject({
          code: 'REQUEST_CONFLICT',
          details: { runId: run.id },
        });
      }
      expect(model.requests).toHaveLength(2);
      // A failed run goes on when that is asked for, as the same run.
      await engine.runs.retry(failed.id);
      expect(await engine.runs.result(failed.id)).toMatchObject({ status: 'completed', output: 'after a retry' });
      expect(await engine.runs.start(requests[1]!)).toMatchObject({ id: failed.id, status: 'completed' });
    });

    it('SUB-2: a run started twice because the first answer was lost is one run, executed once', async () => {
      const store = new FailingStore(new MemoryRunStore());
      const model = scriptedModel([{ text: 'done' }]);
      const engine = await engineOver(store, agent(model));
      store.fail('create', { lost: true });
      // Nor does the look at what became of it come through.
      store.fail('load');
      await expect(engine.runs.start({ ...start, requestId: 'q' })).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
      });
      const again = await engine.runs.start({ ...start, requestId: 'q' });
      expect(again.deduplicated).toBe(true);
      expect(await engine.runs.result(again.id)).toMatchObject({ status: 'completed', output: 'done' });
      expect(model.requests).toHaveLength(1);
    });
  });

  describe("with the caller's run id", () => {
    it('RUN-5: a taken id is refused by default, naming the status of the run that has it', async () => {
      const engine = await reader();
      await engine.runs.start({ ...start, runId: 'mine' });
      await expect(engine.runs.start({ ...start, runId: 'mine' })).rejects.toMatchObject({
        code: 'RUN_EXISTS',
        details: { runId: 'mine', status: 'pending' },
      });
    });

    it("RUN-5: ifExists 'resume' returns an open run that nobody has to do anything about", async () => {
      const engine = await reader();
      await engine.runs.start({ ...start, runId: 'head', sessionId: 's' });
      await engine.runs.start({ ...start, runId: 'behind', sessionId: 's', enqueue: true });
      for (const [runId, status] of [
        ['head', 'pending'],
        ['behind', 'queued'],
      ] as const) {
        const again = await engine.runs.start({ ...start, runId, sessionId: 's', enqueue: true, ifExists: 'resume' });
        expect(again).toMatchObject({ id: runId, status, deduplicated: true });
      }
    });

    it("RUN-5: ifExists 'resume' gives a settled run's result and changes nothing", async () => {
      const engine = await reader();
      await engine.runs.start({ ...start, runId: 'mine' });
      await engine.runs.cancel('mine');
      expect(await engine.runs.start({ ...start, runId: 'mine', ifExists: 'resume' })).toMatchObject({
        status: 'cancelled',
        sequence: 2,
      });
    });

    it("RUN-5: ifExists 'resume' is a conflict while somebody executes the run", async () => {
      const store = new MemoryRunStore();
      const model = scriptedModel([{ hang: true }]);
      const engine = await engineOver(store, agent(model));
      await engine.runs.start({ ...start, runId: 'mine' });
      await model.requested(1);
      await expect(engine.runs.start({ ...start, runId: 'mine', ifExists: 'resume' })).rejects.toMatchObject({
        code: 'RUN_LEASED',
        details: { owner: engine.worker.workerId, expiresAt: expect.any(Date) },
      });
      await engine.runs.cancel('mine');
    });
  });

  describe('with bad input', () => {
    const long = 'x'.repeat(129);
    const bad: [what: string, options: unknown, field: string][] = [
      ['no options', undefined, ''],
      ['null', null, ''],
      ['a list', [], ''],
      ['text', 'hello', ''],
      ['neither prompt nor messages', { agent: 'support' }, 'prompt'],
      ['both prompt and messages', { ...start, messages: [{ role: 'user', content: 'x' }] }, 'prompt'],
      ['an empty prompt', { ...start, prompt: '' }, 'prompt'],
      ['a prompt of blanks', { ...start, prompt: ' \n\t\u200b\u00a0' }, 'prompt'],
      ['a prompt that is no text', { ...start, prompt: 7 }, 'prompt'],
      ['no messages', { agent: 'support', messages: [] }, 'messages'],
      [
        'a last message of another role',
        { agent: 'support', messages: [{ role: 'assistant', content: 'x' }] },
        'messages[0].role',
      ],
      ['an unknown role', { agent: 'support', messages: [{ role: 'robot', content: 'x' }] }, 'messages[0].role'],
      ['a blank message', { agent: 'support', messages: [{ role: 'user', content: ' ' }] }, 'messages[0].content'],
      [
        'an unanswered call in the history',
        {
          agent: 'support',
          messages: [
            { role: 'user', content: 'x' },
            { role: 'assistant', content: [{ type: 'tool-call', callId: 'c', name: 't', arguments: {} }] },
            { role: 'user', content: 'x' },
          ],
        },
        'messages[1]',
      ],
      ['a session id with a blank', { ...start, sessionId: 'a b' }, 'sessionId'],
      ['a session id beyond ASCII', { ...start, sessionId: 'usér' }, 'sessionId'],
      ['an empty session id', { ...start, sessionId: '' }, 'sessionId'],
      ['a session id of 129 characters', { ...start, sessionId: long }, 'sessionId'],
      ['a null session id', { ...start, sessionId: null }, 'sessionId'],
      ['a request id that is a number', { ...start, requestId: 7 }, 'requestId'],
      ['a request id of 129 characters', { ...start, requestId: long }, 'requestId'],
      ['a request id with an emoji', { ...start, requestId: 'q\u{1F511}' }, 'requestId'],
      ['a run id with a slash', { ...start, runId: 'a/b' }, 'runId'],
      ['an unknown ifExists', { ...start, ifExists: 'whatever' }, 'ifExists'],
      ['an enqueue that is text', { ...start, enqueue: 'false' }, 'enqueue'],
      ['a version that is a number', { ...start, version: 1 }, 'version'],
      ['a budget without its number', { ...start, budget: {} }, 'budget.maxTotalTokens'],
      ['a budget of zero', { ...start, budget: { maxTotalTokens: 0 } }, 'budget.maxTotalTokens'],
      [
        'a budget that is no whole number',
        { ...start, budget: { maxTotalTokens: Number.NaN } },
        'budget.maxTotalTokens',
      ],
      ['a budget of something else', { ...start, budget: { maxTokens: 5 } }, 'budget.maxTokens'],
      ['metadata that is a list', { ...start, metadata: [] }, 'metadata'],
      ['metadata that is nested', { ...start, metadata: { a: {} } }, 'metadata.a'],
      ['a metadata value that is not finite', { ...start, metadata: { a: Number.POSITIVE_INFINITY } }, 'metadata.a'],
      ['a metadata value of 192 characters', { ...start, metadata: { a: 'x'.repeat(192) } }, 'metadata.a'],
      ['a metadata key with a quote', { ...start, metadata: { "a'": 1 } }, "metadata.a'"],
      [
        'a metadata key __proto__ with an object',
        { ...start, metadata: JSON.parse('{"__proto__":{"isAdmin":true}}') },
        'metadata.__proto__',
      ],
      ['an actor without an id', { ...start, actor: { roles: [] } }, 'actor.id'],
      ['an actor whose roles are text', { ...start, actor: { id: 'a', roles: 'admin' } }, 'actor.roles'],
      ['a deadline that is no date', { ...start, deadline: 'tomorrow' }, 'deadline'],
      ['a deadline that is an invalid date', { ...start, deadline: new Date(Number.NaN) }, 'deadline'],
      ['a deadline in the past', { ...start, deadline: new Date(Date.now() - 1) }, 'deadline'],
      ['a maxDuration of text that is none', { ...start, maxDuration: 'soon' }, 'maxDuration'],
      ['a maxDuration that is negative', { ...start, maxDuration: -1 }, 'maxDuration'],
      ['a maxDuration that is infinite', { ...start, maxDuration: Number.POSITIVE_INFINITY }, 'maxDuration'],
      ['a field nobody knows', { ...start, promt: 'x' }, 'promt'],
    ];

    const result = { type: 'tool-result', callId: 'c', name: 't', outcome: 'success', output: null };
    const edit = { by: 'bob', note: 'less', arguments: { cents: 1 } };
    const earlier = (call: object, done: object = {}) => ({
      agent: 'support',
      messages: [
        { role: 'user', content: 'x' },
        { role: 'assistant', content: [{ type: 'tool-call', callId: 'c', name: 't', arguments: {}, ...call }] },
        { role: 'tool', content: [{ ...result, ...done }] },
        { role: 'user', content: 'x' },
      ],
    });
    const part = (role: 'user' | 'assistant', content: object) => ({
      agent: 'support',
      messages: [
        { role, content: [content] },
        { role: 'user', content: 'x' },
      ],
    });

    it.each<[string, object, string | null]>([
      ['an earlier call with its result', earlier({}, { edits: [edit] }), null],
      ['edits that are no list', earlier({}, { edits: edit }), 'messages[2].content[0].edits'],
      ['edits of nothing', earlier({}, { edits: [null] }), 'messages[2].content[0].edits'],
      ['no edits', earlier({}, { edits: [] }), 'messages[2].content[0].edits'],
      ['an edit by nobody', earlier({}, { edits: [{ ...edit, by: 1 }] }), 'messages[2].content[0].edits'],
      ['an edit with an odd note', earlier({}, { edits: [{ ...edit, note: {} }] }), 'messages[2].content[0].edits'],
      ['an edit of a list', earlier({}, { edits: [{ ...edit, arguments: [] }] }), 'messages[2].content[0].edits'],
      ['an outcome that is none', earlier({}, { outcome: 'toString' }), 'messages[2].content[0].outcome'],
      ['no output', earlier({}, { output: undefined }), 'messages[2].content[0].output'],
      ['a result of an odd call', earlier({}, { name: null }), 'messages[2].content[0].name'],
      ['arguments that are a list', earlier({ arguments: [] }), 'messages[1].content[0].arguments'],
      ['raw arguments that are an object', earlier({ rawArguments: {} }), 'messages[1].content[0].rawArguments'],
      ['a provider that is no text', earlier({ provider: 1 }), 'messages[1].content[0].provider'],
      ['an original id that is no text', earlier({ originalCallId: 1 }), 'messages[1].content[0].originalCallId'],
      ['options that are text', earlier({ providerOptions: 'x' }), 'messages[1].content[0].providerOptions'],
      ['reasoning without text', part('assistant', { type: 'reasoning' }), 'messages[0].content[0].text'],
      ['an opaque part of nothing', part('assistant', { type: 'opaque' }), 'messages[0].content[0].value'],
      [
        'a file by an address that is none',
        part('assistant', { type: 'file', mediaType: 'a/b', url: 'x' }),
        'messages[0].content[0]',
      ],
      ['a file of nothing', part('assistant', { type: 'file', mediaType: 'a/b' }), 'messages[0].content[0]'],
      [
        'a file of an odd type',
        part('assistant', { type: 'file', mediaType: 'x', data: 'AAAA' }),
        'messages[0].content[0].mediaType',
      ],
      [
        "a user's file by an address that is none",
        part('user', { type: 'file', mediaType: 'a/b', url: 'https://' }),
        'messages[0].content[0]',
      ],
      [
        "a user's file of an odd name",
        part('user', { type: 'file', mediaType: 'a/b', data: 'AAAA', filename: 1 }),
        'messages[0].content[0].filename',
      ],
      [
        "a user's options that are a list",
        part('user', { type: 'text', text: 'x', providerOptions: [] }),
        'messages[0].content[0].providerOptions',
      ],
      ['a part of an assistant that is nothing', part('assistant', null as never), 'messages[0].content[0].type'],
      ['a part of an assistant that is text', part('assistant', 'x' as never), 'messages[0].content[0].type'],
      ['a result that is nothing', part('tool' as 'user', null as never), 'messages[0].content[0].type'],
      ['a part that is nothing', part('user', null as never), 'messages[0].content[0].type'],
    ])('SUB-3: messages of the caller: %s', async (_, options, field) => {
      const engine = await reader();
      const started = engine.runs.start(options as StartOptions);
      if (field === null) return expect(await started).toMatchObject({ status: 'pending' });
      await expect(started).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        details: { fields: [expect.objectContaining({ field })] },
      });
    });

    it('SUB-3: what `messages` gives of a run is a prompt of the next', async () => {
      const model = scriptedModel([{ calls: [{ name: 'pay', args: { cents: 1 } }] }, { text: 'done' }, { text: 'ok' }]);
      const engine = await engineOver(new MemoryRunStore(), agent(model, [tool('pay', () => ({ paid: true }))]));
      const { id } = await engine.runs.startAndWait(start);
      const messages = [...(await engine.runs.messages(id)), { role: 'user', content: 'and now?' }];
      expect(await engine.runs.startAndWait({ agent: 'support', messages } as StartOptions)).toMatchObject({
        status: 'completed',
        output: 'ok',
      });
    });

    it.each(bad)('SUB-3: %s is refused by the name of the field, and no row exists', async (_, options, field) => {
      const store = new MemoryRunStore();
      const engine = await reader(store);
      await expect(engine.runs.start(options as StartOptions)).rejects.toMatchObject({
        code: 'INVALID_REQUEST',
        details: { fields: expect.arrayContaining([expect.objectContaining({ field })]) },
      });
      expect((await store.list({ limit: 10 })).items).toEqual([]);
      expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
    });

    it.each([
      ['an unknown agent', { ...start, agent: 'nobody' }],
      ['an unknown version', { ...start, version: '9' }],
      ['no agent', { prompt: 'x' }],
      ['an agent called __proto__', { ...start, agent: '__proto__' }],
      ['a number as agent', { ...start, agent: 5 }],
    ])('SUB-3: %s is refused, naming what is registered', async (_, options) => {
      const engine = await reader();
      await expect(engine.runs.start(options as StartOptions)).rejects.toMatchObject({
        code: 'AGENT_NOT_FOUND',
        message: expect.stringContaining('support@1'),
      });
    });

    it('SUB-3: every problem is told at once', async () => {
      const engine = await reader();
      const options = { agent: 'support', prompt: '', sessionId: 'a b', budget: 5 } as unknown as StartOptions;
      await expect(engine.runs.start(options)).rejects.toMatchObject({
        details: { fields: [{ field: 'prompt' }, { field: 'sessionId' }, { field: 'budget' }] },
      });
    });

    it('SUB-3: a prompt beyond maxPayloadBytes is refused before a row exists; one of its size is stored', async () => {
      const store = new MemoryRunStore();
      const engine = await reader(store, { maxPayloadBytes: 1_000 });
      await expect(engine.runs.start({ ...start, prompt: 'x'.repeat(1_000) })).rejects.toMatchObject({
        code: 'PAYLOAD_TOO_LARGE',
      });
      // Bytes, not characters.
      await expect(engine.runs.start({ ...start, prompt: '日'.repeat(400) })).rejects.toMatchObject({
        code: 'PAYLOAD_TOO_LARGE',
      });
      expect((await store.list({ limit: 10 })).items).toEqual([]);
      await engine.runs.start({ ...start, prompt: 'x'.repeat(900) });
    });

    it('SUB-8: a prompt is stored and given to the model exactly, whatever characters it has (B070)', async () => {
      const prompt = 'a\u0000b 👍🏽 \ud83d \u2028 "__proto__" \r\n';
      const model = scriptedModel([{ text: 'done' }], { strict: [] });
      const engine = await engineOver(new MemoryRunStore(), agent(model));
      const run = await engine.runs.startAndWait({ ...start, prompt });
      expect(model.requests[0]?.messages.at(-1)).toMatchObject({ content: [{ type: 'text', text: prompt }] });
      expect((await engine.runs.messages(run.id))[0]).toMatchObject({ content: [{ type: 'text', text: prompt }] });
    });
  });

  describe('while others run', () => {
    it('SUB-7: a process executes maxConcurrentRuns at a time; the others wait and lose nothing', async () => {
      const store = new MemoryRunStore();
      let active = 0;
      let most = 0;
      const gate = signal();
      const model = scriptedModel(
        [
          async () => {
            most = Math.max(most, ++active);
            await gate.promise;
            active--;
            return { text: 'done' };
          },
        ],
        { place: 'transcript' },
      );
      const engine = await engineOver(store, agent(model), { maxConcurrentRuns: 2 });
      const runs = await Promise.all(Array.from({ length: 7 }, () => engine.runs.start(start)));
      expect(runs.filter(({ status }) => status === 'running')).toHaveLength(2);
      expect(engine.worker.status()).toMatchObject({ activeRuns: 2, maxConcurrentRuns: 2 });
      gate.resolve();
      const ended = await Promise.all(runs.map(({ id }) => engine.runs.result(id)));
      expect(ended.every(({ status }) => status === 'completed')).toBe(true);
      expect(most).toBe(2);
    });

    it('SUB-7: a run started while the worker looks for others does not make it execute more than it may', async () => {
      const store = new FailingStore(new MemoryRunStore());
      let active = 0;
      let most = 0;
      const model = scriptedModel(
        [
          async () => {
            most = Math.max(most, ++active);
            await new Promise((resolve) => setImmediate(resolve));
            active--;
            return { text: 'done' };
          },
        ],
        { place: 'transcript' },
      );
      const outside = await reader(store.inner as MemoryRunStore);
      const engine = await engineOver(store, agent(model), { maxConcurrentRuns: 1 });
      engine.worker.pause();
      const waiting = await outside.runs.start(start);
      const gate = store.hold('due', { after: true });
      engine.worker.resume();
      await gate.reached;
      const started = await engine.runs.start(start);
      expect(started.status).toBe('running');
      gate.open();
      await Promise.all([engine.runs.result(started.id), engine.runs.result(waiting.id)]);
      expect(most).toBe(1);
    });

    it('OPS-3: maxPendingRuns refuses what would wait, says when to come again, and lets it in when there is room', async () => {
      const engine = await reader(new MemoryRunStore(), { maxPendingRuns: 2 });
      const [first] = [await engine.runs.start(start), await engine.runs.start(start)];
      await expect(engine.runs.start(start)).rejects.toMatchObject({
        code: 'TOO_MANY_PENDING',
        retryable: true,
        details: { retryAfterMs: expect.any(Number) },
      });
      await engine.runs.cancel(first.id);
      await expect(engine.runs.start(start)).resolves.toMatchObject({ status: 'pending' });
    });

    it('OPS-3: a run that is executed at once does not count as waiting', async () => {
      const model = scriptedModel([{ text: 'done' }], { place: 'transcript' });
      const engine = await engineOver(new MemoryRunStore(), agent(model), { maxPendingRuns: 1 });
      for (let n = 0; n < 5; n++) await engine.runs.startAndWait(start);
    });
  });

  it('SUB-6: what was registered is frozen on the run: version, hash, contract version, policies, retry policy, limits', async () => {
    const store = new MemoryRunStore();
    const engine = await engineOver(store, agent(scriptedModel([])), { worker: false });
    const run = await engine.runs.start({ ...start, maxDuration: '5m' });
    expect(await rowOf(store, run.id)).toMatchObject({
      version: '1',
      definitionHash: 'hash-1',
      contractVersion: 1,
      frozen: {
        maxTurns: 20,
        toolConcurrency: 8,
        maxDurationMs: 300_000,
        modelRetry: { maxAttempts: 3 },
        recovery: {},
      },
    });
  });

  it('SUB-6: without a version the highest registered one is taken, and a named one where it is asked for', async () => {
    const versions = ['1', '2', '10'].map((version) =>
      agent(scriptedModel([]), [], { version, hash: `hash-${version}` }),
    );
    const engine = await engineOver(new MemoryRunStore(), versions, { worker: false });
    expect((await engine.runs.start({ ...start, version: '2' })).version).toBe('2');
    expect((await engine.runs.start(start)).version).toBe('10');
  });
});
