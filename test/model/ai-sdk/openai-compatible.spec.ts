/** The adapter over a real AI SDK provider (specification v3) and a strict HTTP model. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { JsonObject, JsonValue } from '../../../lib/contracts/json.js';
import type { AssistantPart, Message, ToolOutcome, UserPart } from '../../../lib/contracts/message.js';
import type {
  ModelClient,
  ModelReply,
  ModelReplyCall,
  ModelRequest,
} from '../../../lib/contracts/ports/model-client.port.js';
import { ModelCallError } from '../../../lib/errors/run.errors.js';
import { aiSdkModel } from '../../../lib/model/ai-sdk/ai-sdk-model.js';
import { scriptPrompt, startModelServer, type ModelServer, type WireStep } from '../../support/model-server.js';

const API_KEY = 'sk-canary-0123456789';
let server: ModelServer;
let model: ModelClient;

beforeAll(async () => {
  server = await startModelServer();
  const provider = createOpenAICompatible({ name: 'scripted', baseURL: server.url, apiKey: API_KEY });
  model = aiSdkModel(provider('model-1'));
});
afterAll(() => server.close());
beforeEach(() => void server.requests.splice(0));

const user = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });
const assistant = (...content: AssistantPart[]): Message => ({ role: 'assistant', content });
const call = (callId: string, args: JsonObject = {}, name = 'pay'): AssistantPart => ({
  type: 'tool-call',
  callId,
  name,
  arguments: args,
});
const results = (...given: [string, ToolOutcome, JsonValue][]): Message => ({
  role: 'tool',
  content: given.map(([callId, outcome, output]) => ({ type: 'tool-result', callId, name: 'pay', outcome, output })),
});
const request = (messages: Message[], more: Partial<ModelRequest> = {}): ModelRequest => ({
  instructions: 'You help.',
  messages,
  tools: [],
  signal: new AbortController().signal,
  ...more,
});
const ask = (...steps: WireStep[]): Promise<ModelReply> => model.generate(request([user(scriptPrompt(...steps))]));
const failing = async (...steps: WireStep[]): Promise<ModelCallError> => {
  const error: unknown = await ask(...steps).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ModelCallError);
  return error as ModelCallError;
};
const lastSent = () => server.requests.at(-1)!.body;

describe('MOD-1: a reply', () => {
  it('comes with text, calls, finish reason and usage', async () => {
    const reply = await ask({
      text: 'I pay.',
      calls: [
        { name: 'pay', args: { cents: 5 }, id: 'c1' },
        { name: 'pay', args: '{"cents": 05' },
      ],
      usage: { in: 7, out: 3 },
    });
    expect(reply).toMatchObject({
      content: [
        { type: 'text', text: 'I pay.' },
        { type: 'tool-call', callId: 'c1', name: 'pay', argumentsText: '{"cents":5}' },
        { type: 'tool-call', name: 'pay', argumentsText: '{"cents": 05' },
      ],
      finishReason: 'tool-calls',
      usage: { inputTokens: 7, outputTokens: 3, totalTokens: 10 },
    });
    expect(JSON.parse(JSON.stringify(reply))).toEqual(reply);
    expect(JSON.stringify(reply)).not.toContain('chatcmpl');
  });

  it('MOD-2: takes exactly one request, whatever it answers', async () => {
    await failing({ fail: { status: 503, times: 9 } });
    await failing({ fail: { status: 429, times: 9, headers: { 'retry-after': '0' } } });
    await ask({ text: 'fine' });
    expect(server.requests).toHaveLength(3);
  });

  it('names itself after provider and model', () => {
    expect(model.name).toBe('scripted.chat:model-1');
  });

  it('B085: cut by its length keeps its calls and says so', async () => {
    const reply = await ask({ finish: 'length', calls: [{ name: 'rm', args: '{"path":"/tmp/a","recursive":true' }] });
    expect(reply.finishReason).toBe('length');
    expect((reply.content[0] as ModelReplyCall).argumentsText).toBe('{"path":"/tmp/a","recursive":true');
    for (const finish of ['max_tokens', 'MAX_TOKENS', 'model_length', 'incomplete:max_output_tokens']) {
      expect((await ask({ finish, text: 'Let me' })).finishReason).toBe('length');
    }
  });

  it('B097: refused or filtered says so', async () => {
    expect((await ask({ finish: 'content_filter', text: 'I' })).finishReason).toBe('content-filter');
    expect((await ask({ finish: 'refusal' })).finishReason).toBe('refusal');
    const refusal = await ask({ message: { refusal: 'I will not.' } });
    expect(refusal).toMatchObject({ finishReason: 'refusal', content: [{ type: 'text', text: 'I will not.' }] });
  });

  it.each<[string, unknown, object]>([
    ['null', null, {}],
    ['empty', {}, {}],
    ['null numbers', { prompt_tokens: null }, {}],
    ['negative', { prompt_tokens: -1 }, {}],
    [
      'a total of its own',
      { prompt_tokens: 10, completion_tokens: 5, total_tokens: 999 },
      { inputTokens: 10, outputTokens: 5, totalTokens: 15 },
    ],
    [
      'cached inside',
      { prompt_tokens: 70838, prompt_tokens_details: { cached_tokens: 69905 } },
      { inputTokens: 70838, cachedInputTokens: 69905 },
    ],
    ['other names', { input_tokens: 933, cache_read_input_tokens: 69905 }, {}],
  ])('B093: usage %s', async (_title, rawUsage, expected) => {
    const { usage } = await ask({ text: 'x', rawUsage });
    // What this SDK could not read it reports as nothing or as zero: never a number that was not there.
    expect(usage).toEqual(expected);
  });

  it('B093: usage that is missing stays unknown', async () => {
    expect((await ask({ text: 'x', usage: null })).usage).toEqual({});
  });
});

describe('What goes to the provider', () => {
  const accepted = async (messages: Message[], more: Partial<ModelRequest> = {}) => {
    const reply = await model.generate(
      request([user(scriptPrompt({ text: 'never' }, { text: 'never' })), ...messages], more),
    );
    expect(reply.finishReason).toBe('stop');
    return lastSent().messages;
  };

  it('has the instructions, the tools and the settings', async () => {
    const provider = createOpenAICompatible({ name: 'scripted', baseURL: server.url });
    const configured = aiSdkModel(provider('model-1'), {
      name: 'mine',
      settings: {
        temperature: 0,
        maxOutputTokens: 50,
        seed: 7,
        headers: { 'x-extra': '1' },
        providerOptions: { scripted: { user: 'u1' } },
      },
    });
    const inputSchema = { type: 'object', properties: { cents: { type: 'integer', description: 'a\ud83d' } } };
    await configured.generate(
      request([user('hi')], { tools: [{ name: 'pay', description: 'Pays \ud83d', inputSchema }] }),
    );
    expect(configured.name).toBe('mine');
    expect(lastSent()).toMatchObject({
      model: 'model-1',
      temperature: 0,
      max_tokens: 50,
      seed: 7,
      user: 'u1',
      tool_choice: 'auto',
      messages: [
        { role: 'system', content: 'You help.' },
        { role: 'user', content: 'hi' },
      ],
      tools: [
        {
          type: 'function',
          function: {
            name: 'pay',
            description: 'Pays \ufffd',
            parameters: { type: 'object', properties: { cents: { description: 'a\ufffd' } } },
          },
        },
      ],
    });
    expect(server.requests.at(-1)!.headers['x-extra']).toBe('1');
  });

  it('has the settings of the agent before those of the client, and its tool choice', async () => {
    const provider = createOpenAICompatible({ name: 'scripted', baseURL: server.url });
    const configured = aiSdkModel(provider('model-1'), {
      settings: { temperature: 1, seed: 7, providerOptions: { scripted: { user: 'u1', reasoningEffort: 'low' } } },
    });
    const tools = [{ name: 'pay', description: 'Pays', inputSchema: { type: 'object' } }];
    const settings = {
      temperature: 0,
      topP: 0.5,
      stopSequences: ['END'],
      maxOutputTokens: 9,
      providerOptions: { scripted: { user: 'u2' } },
    };
    const choices: [ModelRequest['toolChoice'], unknown][] = [
      [undefined, 'auto'],
      ['none', 'none'],
      ['required', 'required'],
      [{ tool: 'pay' }, { type: 'function', function: { name: 'pay' } }],
    ];
    for (const [toolChoice, expected] of choices) {
      await configured.generate(request([user('hi')], { tools, settings, ...(toolChoice && { toolChoice }) }));
      expect(lastSent()).toMatchObject({
        temperature: 0,
        top_p: 0.5,
        stop: ['END'],
        max_tokens: 9,
        seed: 7,
        user: 'u2',
        reasoning_effort: 'low',
        tool_choice: expected,
      });
    }
  });

  it('leaves tools and instructions out when there are none', async () => {
    await model.generate(request([user('hi')], { instructions: ' ' }));
    expect(lastSent()).not.toHaveProperty('tools');
    expect(lastSent()).not.toHaveProperty('tool_choice');
    expect(lastSent().messages).toEqual([{ role: 'user', content: 'hi' }]);
  });

  it('MOD-4: has one result per call, in call order, in words for every outcome', async () => {
    const outcomes: [ToolOutcome, JsonValue, string][] = [
      ['success', 'paid', 'paid'],
      ['success', '', '(empty result)'],
      ['success', '\u200b', '(empty result)'],
      ['success', null, 'null'],
      ['success', 0, '0'],
      ['success', false, 'false'],
      ['success', { a: [1, 'ü'] }, '{"a":[1,"ü"]}'],
      ['success', '{"a":1}', '{"a":1}'],
      ['error', 'boom', 'boom'],
      ['denied', 'Denied by alice', 'Denied by alice'],
      ['unknown', 'It was cut.', 'Outcome unknown: It was cut.'],
      ['invalid_arguments', 'cents is missing', 'cents is missing'],
      ['unknown_tool', 'No tool "serch"; there are: search', 'No tool "serch"; there are: search'],
      ['cancelled', '', 'This call was cancelled.'],
      ['not_executed', null, 'This call was not executed.'],
    ];
    const sent = await accepted([
      assistant({ type: 'text', text: 'Paying.' }, ...outcomes.map((_, index) => call(`c${index}`, { index }))),
      results(
        ...outcomes.map(([outcome, output], index): [string, ToolOutcome, JsonValue] => [`c${index}`, outcome, output]),
      ),
    ]);
    expect(
      sent.filter(({ role }) => role === 'tool').map(({ tool_call_id, content }) => [tool_call_id, content]),
    ).toEqual(outcomes.map(([, , words], index) => [`c${index}`, words]));
  });

  it('B071: has an object as input of a call whose arguments were none', async () => {
    const sent = await accepted([
      assistant({ type: 'tool-call', callId: 'c1', name: 'weather', rawArguments: '{"city": "Par' }),
      results(['c1', 'invalid_arguments', 'not valid JSON']),
    ]);
    expect(sent.find(({ role }) => role === 'assistant')).toMatchObject({
      content: null,
      tool_calls: [{ id: 'c1', function: { name: 'weather', arguments: '{}' } }],
    });
  });

  it.each(['', ' ', '\n', '\u200b'])('B098: has no blank block where the transcript has %j', async (blank) => {
    const sent = await accepted([
      assistant({ type: 'text', text: blank }),
      user('and'),
      assistant({ type: 'text', text: blank }, call('c1')),
      results(['c1', 'success', blank]),
      {
        role: 'user',
        content: [
          { type: 'text', text: blank },
          { type: 'text', text: 'more' },
        ],
      },
      assistant({ type: 'reasoning', text: 'hm' }, { type: 'text', text: blank }),
      { role: 'user', content: [{ type: 'text', text: blank }] },
    ]);
    expect(sent.filter(({ content }) => content === '(empty message)')).toHaveLength(3);
    expect(sent).toContainEqual({ role: 'user', content: 'more' });
  });

  it('B068: is well-formed, whatever a tool returned', async () => {
    const cut = 'x'.repeat(9) + '\u{1F511}'.slice(0, 1);
    const sent = await accepted(
      [
        assistant(
          { type: 'text', text: cut },
          { type: 'reasoning', text: cut },
          call('c1', { [cut]: [cut] }),
          call('c2'),
        ),
        results(['c1', 'success', cut], ['c2', 'error', { [cut]: cut }]),
        { role: 'system', content: cut },
        user(cut),
      ],
      { instructions: cut },
    );
    expect(JSON.stringify(sent)).not.toMatch(/\\ud[89a-f]/i);
    expect(JSON.stringify(sent).match(/\ufffd/g)!.length).toBeGreaterThanOrEqual(9);
  });

  it('keeps NUL, controls, astral characters and __proto__ keys as they are', async () => {
    const value = JSON.parse('{"__proto__":{"isAdmin":true},"k\\u0000":"\\u0001\\u2028\\ud83d\\udd11"}') as JsonObject;
    const sent = await accepted([assistant(call('c1', value)), results(['c1', 'success', value])]);
    expect(sent.find(({ role }) => role === 'assistant')!.tool_calls![0]!.function.arguments).toBe(
      JSON.stringify(value),
    );
    expect(sent.find(({ role }) => role === 'tool')!.content).toBe(JSON.stringify(value));
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });

  it('SUB-8: has inline media byte for byte, and URLs as they are', async () => {
    const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, index) => (index * 31) % 256));
    const data = bytes.toString('base64');
    const parts: UserPart[] = [
      { type: 'text', text: 'Look:' },
      { type: 'file', mediaType: 'image/png', data, filename: 'a.png' },
      { type: 'file', mediaType: 'image/webp', url: 'https://h.example/a%20b.webp?x=1&y=%C3%BC' },
      { type: 'file', mediaType: 'application/pdf', data, filename: 'b.pdf' },
      { type: 'file', mediaType: 'audio/wav', data },
      { type: 'file', mediaType: 'text/plain', data: Buffer.from('grüße \u{1F511}').toString('base64') },
    ];
    const sent = await accepted([{ role: 'user', content: parts }]);
    expect(sent.at(-1)!.content).toEqual([
      { type: 'text', text: 'Look:' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } },
      { type: 'image_url', image_url: { url: 'https://h.example/a%20b.webp?x=1&y=%C3%BC' } },
      { type: 'file', file: { filename: 'b.pdf', file_data: `data:application/pdf;base64,${data}` } },
      { type: 'input_audio', input_audio: { data, format: 'wav' } },
      { type: 'text', text: 'grüße \u{1F511}' },
    ]);
    const [, image] = sent.at(-1)!.content as unknown as { image_url: { url: string } }[];
    expect(Buffer.from(image!.image_url.url.split(',')[1]!, 'base64').equals(bytes)).toBe(true);
  });

  it('continues a scripted conversation over several turns', async () => {
    const steps: WireStep[] = [
      { calls: [{ name: 'pay', id: 'c1' }] },
      { calls: [{ name: 'pay', id: 'c2' }] },
      { echo: true },
    ];
    const messages = [user(scriptPrompt(...steps))];
    for (const id of ['c1', 'c2']) {
      const reply = await model.generate(request(messages));
      expect(reply.content).toMatchObject([{ type: 'tool-call', callId: id }]);
      messages.push(assistant(call(id)), results([id, 'success', { paid: id }]));
    }
    expect((await model.generate(request(messages))).content).toEqual([{ type: 'text', text: '{"paid":"c2"}' }]);
    expect(server.requests.map(({ step }) => step)).toEqual([0, 1, 2]);
  });
});

describe('MOD-2: a failure', () => {
  it.each([408, 409, 425, 429, 500, 502, 503, 504, 529])('%i may pass', async (status) => {
    expect(await failing({ fail: { status } })).toMatchObject({ status, retryable: true, code: 'MODEL_CALL_FAILED' });
  });

  it.each([400, 401, 402, 403, 404, 405, 413, 422])('%i is permanent', async (status) => {
    expect(await failing({ fail: { status } })).toMatchObject({ status, retryable: false });
  });

  it('B089: carries the announced delay, the longer of two headers', async () => {
    expect((await failing({ fail: { status: 429, headers: { 'retry-after': '3' } } })).retryAfterMs).toBe(3_000);
    expect((await failing({ fail: { status: 503, headers: { 'retry-after': '0' } } })).retryAfterMs).toBe(0);
    expect((await failing({ fail: { status: 503, headers: { 'retry-after': ['1', '5'] } } })).retryAfterMs).toBe(5_000);
    expect((await failing({ fail: { status: 529, headers: { 'Retry-After-Ms': '250' } } })).retryAfterMs).toBe(250);
    for (const garbage of ['-5', '1.5', '', 'abc']) {
      expect(
        (await failing({ fail: { status: 429, headers: { 'retry-after': garbage } } })).retryAfterMs,
      ).toBeUndefined();
    }
  });

  it('out of quota or context is permanent whatever the status', async () => {
    const quota = {
      error: { message: 'You exceeded your current quota.', type: 'insufficient_quota', code: 'insufficient_quota' },
    };
    expect(await failing({ fail: { status: 429, body: quota } })).toMatchObject({ status: 429, retryable: false });
    const context = {
      error: { message: "This model's maximum context length is 8192 tokens.", code: 'context_length_exceeded' },
    };
    expect(await failing({ fail: { status: 500, body: context } })).toMatchObject({ status: 500, retryable: false });
    const slow = {
      error: { message: 'Too many tokens of your context window per minute.', code: 'rate_limit_exceeded' },
    };
    expect(await failing({ fail: { status: 429, body: slow } })).toMatchObject({ retryable: true });
  });

  it.each<[string, unknown, object]>([
    ['an overload', { error: { message: 'Overloaded', type: 'overloaded_error' } }, { status: 529, retryable: true }],
    ['a numeric code', { error: { message: 'upstream', code: 502 } }, { status: 502, retryable: true }],
    [
      'an invalid request',
      { error: { message: 'no such field', type: 'invalid_request_error' } },
      { status: 400, retryable: false },
    ],
    ['an unknown error', { error: { message: 'hm' } }, { status: 200, retryable: false }],
    ['an error text', { error: 'hm' }, { status: 200, retryable: false }],
    ['a web page', '<html>sign in</html>', { status: 200, retryable: true }],
    ['half of JSON', '{"choices":[', { status: 200, retryable: true }],
    ['nothing', '', { status: 200, retryable: true }],
  ])('B088: a 200 with %s inside', async (_title, body, expected) => {
    const error = await failing({ body });
    expect(error).toMatchObject(expected);
    expect(error.message).not.toMatch(/<html>|choices/);
  });

  it('a 200 without choices may pass', async () => {
    expect(await failing({ body: { choices: [] } })).toMatchObject({ retryable: true });
  });

  it('a connection that is refused, cut before or in the middle of the answer may pass', async () => {
    for (const cut of ['before', 'body'] as const) {
      const error = await failing({ cut });
      expect(error).toMatchObject({ retryable: true });
      expect(error.status).toBeUndefined();
      expect(error.message).toMatch(/connection broke/);
    }
    const nowhere = await startModelServer();
    await nowhere.close();
    const provider = createOpenAICompatible({ name: 'gone', baseURL: nowhere.url });
    const error = (await aiSdkModel(provider('m'))
      .generate(request([user('hi')]))
      .catch((thrown: unknown) => thrown)) as ModelCallError;
    expect(error).toMatchObject({ retryable: true, message: expect.stringContaining('ECONNREFUSED') });
  });

  it('an abort ends the request, on the wire too', async () => {
    const controller = new AbortController();
    const pending = model.generate(request([user(scriptPrompt({ hang: true }))], { signal: controller.signal }));
    const { gone } = await server.requested(1);
    controller.abort(new Error('canary'));
    await expect(pending).rejects.toMatchObject({
      code: 'MODEL_CALL_FAILED',
      message: expect.stringContaining('aborted'),
    });
    await gone;
    await expect(model.generate(request([user('hi')], { signal: controller.signal }))).rejects.toThrow(/aborted/);
    expect(server.requests).toHaveLength(1);
  });
});

describe('B165: what is left of a failure', () => {
  const everything = (error: ModelCallError) =>
    [error.message, error.stack, JSON.stringify(error), JSON.stringify(error.details), String(error.cause)].join('\n') +
    JSON.stringify(
      Object.getOwnPropertyNames(error).map((name) => (error as unknown as Record<string, unknown>)[name]),
    );

  it.each([
    ['the key in a 401', 401, { error: { message: `Incorrect API key provided: ${API_KEY}.` } }],
    ['a key of no known form in a 401', 401, { error: { message: 'the canary was wrong' } }],
    ['the key in a 403', 403, { error: { message: `canary ${API_KEY}` } }],
    ['the key in a 500', 500, { error: { message: `upstream refused ${API_KEY}` } }],
    ['a header in a 400', 400, { error: { message: 'bad header Authorization: Bearer canary-0123456789' } }],
    ['a token in a 404', 404, { error: { message: 'no route for canary0123456789canary0123456789' } }],
    ['the body of a page', 502, `<html>${API_KEY} canary</html>`],
  ])('%s is not among it', async (_title, status, body) => {
    const error = await failing({ fail: { status, body } });
    expect(error.status).toBe(status);
    expect(everything(error)).not.toContain('canary');
    expect(error.cause).toBeUndefined();
  });

  it('the prompt and the headers are not among it, and the reason is', async () => {
    const error = await failing({
      fail: { status: 400, body: { error: { message: 'temperature must be at most 2' } } },
      text: 'canary',
    });
    expect(error.message).toBe('The model scripted.chat:model-1 answered 400: temperature must be at most 2.');
    expect(everything(error)).not.toMatch(/canary|@@/);
  });

  it('a long reason is cut between code points', async () => {
    const error = await failing({ fail: { status: 422, body: { error: { message: '\u{1F511}'.repeat(5_000) } } } });
    expect(error.message).toMatch(/: \u{1F511}{299}…$/u);
  });
});
