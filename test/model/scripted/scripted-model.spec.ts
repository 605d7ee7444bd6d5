import type { Message } from '../../../lib/contracts/message.js';
import type { ModelReply, ModelRequest } from '../../../lib/contracts/ports/model-client.port.js';
import { scriptedModel, type ScriptedModel } from '../../../lib/model/scripted/scripted-model.js';

const user = (text: string, more: object = {}): Message => ({
  role: 'user',
  content: [{ type: 'text', text }],
  ...more,
});
const turn = (id: string, output = 'ok'): Message[] => [
  { role: 'assistant', content: [{ type: 'tool-call', callId: id, name: 'pay', arguments: {} }] },
  { role: 'tool', content: [{ type: 'tool-result', callId: id, name: 'pay', outcome: 'success', output }] },
];
const request = (messages: Message[], signal = new AbortController().signal): ModelRequest => ({
  instructions: 'i',
  messages,
  tools: [],
  signal,
});
const ask = (model: ScriptedModel, ...messages: Message[]): Promise<ModelReply> => model.generate(request(messages));
const textOf = (reply: ModelReply) =>
  reply.content.map((part) => (part.type === 'text' ? part.text : part.type)).join('|');

describe('MOD-1: the scripted model', () => {
  it('answers with text, calls, parts, usage and finish reason', async () => {
    const model = scriptedModel([
      {
        text: 'I pay.',
        calls: [{ name: 'pay', args: { cents: 5 } }, { name: 'pay', raw: '{"cents":', id: 'own' }, { name: 'now' }],
        parts: [{ type: 'reasoning', text: 'hm' }],
      },
      { text: 'cut', finishReason: 'length', usage: { inputTokens: 1 } },
      { usage: null },
    ]);
    const first = await ask(model, user('hi'));
    expect(first).toEqual({
      content: [
        { type: 'reasoning', text: 'hm' },
        { type: 'text', text: 'I pay.' },
        { type: 'tool-call', callId: expect.stringMatching(/^call_\w+_0$/), name: 'pay', argumentsText: '{"cents":5}' },
        { type: 'tool-call', callId: 'own', name: 'pay', argumentsText: '{"cents":' },
        { type: 'tool-call', callId: expect.stringMatching(/^call_\w+_2$/), name: 'now', argumentsText: '{}' },
      ],
      finishReason: 'tool-calls',
      usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 },
    });
    expect(await ask(model, user('hi'))).toEqual({
      content: [{ type: 'text', text: 'cut' }],
      finishReason: 'length',
      usage: { inputTokens: 1 },
    });
    expect(await ask(model, user('hi'))).toEqual({ content: [], finishReason: 'stop', usage: {} });
    await expect(ask(model, user('hi'))).rejects.toMatchObject({
      retryable: false,
      message: expect.stringContaining('3 steps and was asked for number 4'),
    });
  });

  it('keeps every request as it was', async () => {
    const model = scriptedModel([{ text: 'a' }, { text: 'b' }]);
    const messages = [user('hi')];
    await model.generate(request(messages));
    messages.push(user('more'));
    expect(model.requests).toEqual([{ instructions: 'i', messages: [user('hi')], tools: [], step: 0 }]);
  });

  it('tells of a request when it arrives', async () => {
    let release = () => undefined as void;
    const model = scriptedModel([{ text: 'a', after: new Promise<void>((resolve) => (release = resolve)) }]);
    const arrived = model.requested(1);
    const reply = ask(model, user('hi'));
    expect((await arrived).messages).toEqual([user('hi')]);
    expect((await model.requested(1)).step).toBe(0);
    release();
    expect(textOf(await reply)).toBe('a');
  });

  it('makes a step from the request', async () => {
    const model = scriptedModel([
      ({ messages }, { index, attempt }) => ({ text: `${messages.length} ${index} ${attempt}` }),
    ]);
    expect(textOf(await ask(model, user('hi')))).toBe('1 0 1');
  });

  it('fails as often as it is told, then answers', async () => {
    const model = scriptedModel([
      { text: 'a', fail: { status: 429, retryAfterMs: 3_000, times: 2 } },
      { text: 'b', fail: { times: 1 } },
    ]);
    for (let time = 0; time < 2; time++) {
      await expect(ask(model, user('hi'))).rejects.toMatchObject({
        code: 'MODEL_CALL_FAILED',
        status: 429,
        retryable: true,
        retryAfterMs: 3_000,
      });
    }
    expect(textOf(await ask(model, user('hi')))).toBe('a');
    await expect(ask(model, user('hi'))).rejects.toMatchObject({
      retryable: true,
      message: expect.stringContaining('could not be reached'),
    });
    expect(textOf(await ask(model, user('hi')))).toBe('b');
    expect(model.requests.map(({ step }) => step)).toEqual([0, 0, 0, 1, 1]);
  });

  it.each([
    [400, false],
    [401, false],
    [503, true],
    [529, true],
  ])('%i is retryable: %s', async (status, retryable) => {
    await expect(ask(scriptedModel([{ fail: { status } }]), user('hi'))).rejects.toMatchObject({ status, retryable });
    await expect(ask(scriptedModel([{ fail: { status, retryable: !retryable } }]), user('hi'))).rejects.toMatchObject({
      retryable: !retryable,
    });
  });

  it('hangs until it is aborted', async () => {
    for (const step of [{ hang: true as const }, { delayMs: 1_000_000 }, { after: new Promise(() => undefined) }]) {
      const controller = new AbortController();
      const model = scriptedModel([step]);
      const pending = model.generate(request([user('hi')], controller.signal));
      await model.requested(1);
      controller.abort();
      await expect(pending).rejects.toMatchObject({
        code: 'MODEL_CALL_FAILED',
        message: expect.stringContaining('aborted'),
      });
    }
    await expect(scriptedModel([{ text: 'a' }]).generate(request([user('hi')], AbortSignal.abort()))).rejects.toThrow(
      /aborted/,
    );
  });

  it('MOD-8: can ignore the abort', async () => {
    const controller = new AbortController();
    const pending = scriptedModel([{ hang: 'deaf' }]).generate(request([user('hi')], controller.signal));
    controller.abort();
    const outcome = await Promise.race([
      pending.catch(() => 'settled'),
      new Promise((resolve) => setImmediate(resolve, 'open')),
    ]);
    expect(outcome).toBe('open');
  });

  it('is as strict as a strict provider, unless told otherwise', async () => {
    const broken = [user('hi'), turn('c1')[0]!];
    await expect(ask(scriptedModel([{ text: 'a' }]), ...broken)).rejects.toMatchObject({
      status: 400,
      retryable: false,
      message: expect.stringContaining('c1'),
    });
    expect(textOf(await ask(scriptedModel([{ text: 'a' }], { strict: [] }), ...broken))).toBe('a');
  });
});

describe('A step found by the transcript', () => {
  const script = [
    { calls: [{ name: 'pay', id: 'c1' }] },
    { calls: [{ name: 'pay', id: 'c2' }] },
    { text: 'done', fail: { status: 500 } },
  ];
  const fresh = () => scriptedModel(script, { place: 'transcript' });

  it('is the next one for a resumed run in a fresh process', async () => {
    expect((await ask(fresh(), user('hi'), ...turn('c1'))).content).toMatchObject([{ callId: 'c2' }]);
    expect((await ask(fresh(), user('hi'))).content).toMatchObject([{ callId: 'c1' }]);
  });

  it('starts anew with each prompt of a session, and not with steering', async () => {
    const history = [
      user('earlier'),
      ...turn('x1'),
      { role: 'assistant', content: [{ type: 'text', text: 'bye' }] } satisfies Message,
    ];
    expect(
      (await ask(fresh(), ...history, user('hi'), ...turn('c1'), user('hurry', { kind: 'steering' }))).content,
    ).toMatchObject([{ callId: 'c2' }]);
  });

  it('fails per run, for many runs at once', async () => {
    const model = fresh();
    for (const id of ['m1', 'm2']) {
      const messages = [user('hi', { id }), ...turn('c1'), ...turn('c2')];
      await expect(ask(model, ...messages)).rejects.toMatchObject({ status: 500 });
      expect(textOf(await ask(model, ...messages))).toBe('done');
    }
  });
});

describe('A script in the prompt', () => {
  const steps = [
    {
      calls: [
        { name: 'pay', args: { cents: 5 }, id: 'c1' },
        { name: 'pay', args: '{"cents":' },
      ],
      usage: { in: 3, out: 4 },
    },
    { echo: true, fail: { status: 429, headers: { 'retry-after': '2' }, times: 1 } },
    { text: 'cut', finish: 'length', usage: null },
    { text: 'filtered', finish: 'content_filter' },
  ];
  const prompt = user(`@@${JSON.stringify(steps)}\nPlease.`);
  const model = () => scriptedModel([], { place: 'prompt' });

  it('is played by the transcript, in any process', async () => {
    const first = await ask(model(), prompt);
    expect(first).toMatchObject({
      content: [{ callId: 'c1', argumentsText: '{"cents":5}' }, { argumentsText: '{"cents":' }],
      finishReason: 'tool-calls',
      usage: { inputTokens: 3, outputTokens: 4, totalTokens: 7 },
    });
    expect(await ask(model(), prompt)).toEqual(first);
    const second = model();
    await expect(ask(second, prompt, ...turn('c1'))).rejects.toMatchObject({
      status: 429,
      retryable: true,
      retryAfterMs: 2_000,
    });
    expect(textOf(await ask(second, prompt, ...turn('c1', 'paid'), user('steer', { kind: 'steering' })))).toBe('steer');
    expect(textOf(await ask(second, prompt, ...turn('c1', 'paid')))).toBe('paid');
    expect(await ask(second, prompt, ...turn('c1'), ...turn('c2'))).toMatchObject({
      finishReason: 'length',
      usage: {},
    });
    expect(await ask(second, prompt, ...turn('c1'), ...turn('c2'), ...turn('c3'))).toMatchObject({
      finishReason: 'content-filter',
    });
  });

  it('ends with words, and so does a prompt without one', async () => {
    expect(textOf(await ask(model(), user('@@[]')))).toBe('end of script');
    expect(textOf(await ask(model(), user('hello')))).toBe('no script');
  });

  it.each(['@@', '@@{}', '@@[1]', '@@[', '@@hello'])('%s is no script, and says so', async (text) => {
    await expect(ask(model(), user(text))).rejects.toMatchObject({
      status: 400,
      retryable: false,
      message: expect.stringContaining('@@'),
    });
  });
});
