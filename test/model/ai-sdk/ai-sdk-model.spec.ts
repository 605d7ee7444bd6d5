/** The adapter over hand-made models of each specification. */
import type { LanguageModelV2, LanguageModelV3 } from '@ai-sdk/provider';
import type { AssistantMessage, AssistantPart, Message } from '../../../lib/contracts/message.js';
import type { ModelReply, ModelReplyPart, ModelRequest } from '../../../lib/contracts/ports/model-client.port.js';
import { aiSdkModel } from '../../../lib/model/ai-sdk/ai-sdk-model.js';
import type {
  AiSdkCallOptions,
  AiSdkModel,
  AiSdkPromptPart,
  AiSdkSpecification,
} from '../../../lib/model/ai-sdk/ai-sdk-types.js';

class HandMadeModel implements AiSdkModel {
  readonly modelId = 'hand-made';
  readonly calls: AiSdkCallOptions[] = [];
  constructor(
    readonly specificationVersion: AiSdkSpecification,
    private readonly result: unknown,
    readonly provider = 'acme.chat',
  ) {}
  async doGenerate(options: never): Promise<unknown> {
    this.calls.push(options);
    return this.result;
  }
}

const usage = {
  v2: { inputTokens: 10, outputTokens: 20, totalTokens: 30, cachedInputTokens: 4, reasoningTokens: 15 },
  v3: {
    inputTokens: { total: 10, noCache: 6, cacheRead: 4, cacheWrite: 0 },
    outputTokens: { total: 20, text: 5, reasoning: 15 },
  },
};
const finish = { v2: 'stop', v3: { unified: 'stop', raw: 'end_turn' } };
const resultOf = (version: AiSdkSpecification, content: unknown[], more: object = {}) => ({
  content,
  finishReason: version === 'v2' ? finish.v2 : finish.v3,
  usage: version === 'v2' ? usage.v2 : usage.v3,
  request: { body: 'canary' },
  response: { id: 'canary', headers: { 'x-id': 'canary' }, body: 'canary' },
  providerMetadata: { acme: { note: 'canary' } },
  warnings: [],
  ...more,
});
const request = (messages: Message[] = [], more: Partial<ModelRequest> = {}): ModelRequest => ({
  instructions: '',
  messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }, ...messages],
  tools: [],
  signal: new AbortController().signal,
  ...more,
});
const versions: AiSdkSpecification[] = ['v2', 'v3', 'v4'];

/** What a model's reply looks like to itself in the next prompt: calls as the engine records them. */
async function sentBack(
  version: AiSdkSpecification,
  content: unknown[],
  next = version,
  provider = 'acme.chat',
): Promise<AiSdkPromptPart[]> {
  const { content: parts } = await aiSdkModel(new HandMadeModel(version, resultOf(version, content))).generate(
    request(),
  );
  // Stored and read again.
  const stored = JSON.parse(JSON.stringify({ role: 'assistant', content: parts.map(recorded) })) as AssistantMessage;
  const second = new HandMadeModel(next, resultOf(next, []), provider);
  await aiSdkModel(second).generate(request([stored]));
  return second.calls[0]!.prompt.at(-1)!.content as AiSdkPromptPart[];
}
function recorded(part: ModelReplyPart): AssistantPart {
  if (part.type !== 'tool-call') return part;
  const { argumentsText, ...call } = part;
  return { ...call, arguments: JSON.parse(argumentsText) as { [key: string]: never } };
}

describe.each(versions)('MOD-1: a model of specification %s', (version) => {
  it('is asked once, with prompt, tools, settings and signal', async () => {
    const made = new HandMadeModel(version, resultOf(version, []));
    const controller = new AbortController();
    await aiSdkModel(made, { settings: { topP: 0.5, stopSequences: ['x'] } }).generate(
      request([], {
        instructions: 'Be brief.',
        signal: controller.signal,
        tools: [{ name: 't', description: 'd', inputSchema: { type: 'object' } }],
      }),
    );
    expect(made.calls).toEqual([
      {
        topP: 0.5,
        stopSequences: ['x'],
        prompt: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: [{ type: 'text', text: 'hi' }] },
        ],
        tools: [{ type: 'function', name: 't', description: 'd', inputSchema: { type: 'object' } }],
        toolChoice: { type: 'auto' },
        abortSignal: controller.signal,
      },
    ]);
  });

  it('MOD-9: gives parts, finish reason and usage, and nothing of bodies and headers', async () => {
    const file = version === 'v4' ? { type: 'data', data: 'AAEC' } : 'AAEC';
    const bytes = version === 'v4' ? { type: 'data', data: new Uint8Array([0, 1, 2]) } : new Uint8Array([0, 1, 2]);
    const reply = await aiSdkModel(
      new HandMadeModel(
        version,
        resultOf(version, [
          { type: 'reasoning', text: 'hm', providerMetadata: { acme: { signature: 's' } } },
          { type: 'text', text: 'Hello' },
          { type: 'file', mediaType: 'image/png', data: file },
          { type: 'file', mediaType: 'image/png', data: bytes },
          {
            type: 'tool-call',
            toolCallId: 'c1',
            toolName: 'pay',
            input: '{"a":1',
            providerMetadata: { acme: { t: 'x' } },
          },
          { type: 'tool-call', toolCallId: 'c1', toolName: 'pay', input: { a: 1 } },
          { type: 'tool-call', toolName: 'pay' },
          { type: 'tool-call', toolCallId: 'c2', toolName: 'pay', input: null },
          { type: 'text', text: '' },
          null,
        ]),
      ),
    ).generate(request());
    expect(reply).toEqual({
      content: [
        { type: 'reasoning', text: 'hm', providerOptions: { acme: { signature: 's' } } },
        { type: 'text', text: 'Hello' },
        { type: 'file', mediaType: 'image/png', data: 'AAEC' },
        { type: 'file', mediaType: 'image/png', data: 'AAEC' },
        {
          type: 'tool-call',
          callId: 'c1',
          name: 'pay',
          argumentsText: '{"a":1',
          providerOptions: { acme: { t: 'x' } },
        },
        { type: 'tool-call', callId: 'c1', name: 'pay', argumentsText: '{"a":1}' },
        { type: 'tool-call', callId: '', name: 'pay', argumentsText: '' },
        { type: 'tool-call', callId: 'c2', name: 'pay', argumentsText: '' },
      ],
      finishReason: 'stop',
      usage: { inputTokens: 10, cachedInputTokens: 4, outputTokens: 20, reasoningTokens: 15, totalTokens: 30 },
    } satisfies ModelReply);
    expect(JSON.stringify(reply)).not.toContain('canary');
  });

  it('SUB-8: is given files in the form of its specification', async () => {
    const made = new HandMadeModel(version, resultOf(version, []));
    const url = 'https://h.example/a.png?x=1';
    await aiSdkModel(made).generate(
      request([
        {
          role: 'user',
          content: [
            {
              type: 'file',
              mediaType: 'image/*',
              data: 'AAEC',
              filename: 'a\ud83d',
              providerOptions: { acme: { detail: 'low' } },
            },
            { type: 'file', mediaType: 'image/png', url },
          ],
        },
      ]),
    );
    const tagged = version === 'v4';
    expect(made.calls[0]!.prompt.at(-1)!.content).toEqual([
      {
        type: 'file',
        mediaType: 'image/*',
        data: tagged ? { type: 'data', data: 'AAEC' } : 'AAEC',
        filename: 'a\ufffd',
        providerOptions: { acme: { detail: 'low' } },
      },
      { type: 'file', mediaType: 'image/png', data: tagged ? { type: 'url', url: new URL(url) } : new URL(url) },
    ]);
  });

  it('B099: gets signed reasoning and call metadata back byte for byte, in place', async () => {
    const acme = { signature: 'EqoB/+=\u{1F511}\u0000', z: 1, a: [{ y: 1, b: null }], 'k\ud83d': '\udd11' };
    const content = await sentBack(version, [
      { type: 'reasoning', text: 'first\ud83d', providerMetadata: { acme } },
      { type: 'reasoning', text: '', providerMetadata: { acme: { redactedData: 'xyz' } } },
      { type: 'text', text: '', providerMetadata: { acme: { thoughtSignature: 's' } } },
      { type: 'text', text: 'So.' },
      { type: 'tool-call', toolCallId: 'c1', toolName: 'pay', input: '{}', providerMetadata: { acme } },
    ]);
    expect(content).toEqual([
      { type: 'reasoning', text: 'first\ud83d', providerOptions: { acme } },
      { type: 'reasoning', text: '', providerOptions: { acme: { redactedData: 'xyz' } } },
      { type: 'text', text: '', providerOptions: { acme: { thoughtSignature: 's' } } },
      { type: 'text', text: 'So.' },
      { type: 'tool-call', toolCallId: 'c1', toolName: 'pay', input: {}, providerOptions: { acme } },
    ]);
    expect(JSON.stringify(content[0]!.providerOptions)).toBe(JSON.stringify({ acme }));
  });

  const executed = [
    {
      type: 'tool-call',
      toolCallId: 'srv1',
      toolName: 'web_search',
      input: '{"q":"x"}',
      providerExecuted: true,
      dynamic: true,
      providerMetadata: { acme: { n: 1 } },
    },
    {
      type: 'tool-result',
      toolCallId: 'srv1',
      toolName: 'web_search',
      result: [{ url: 'u' }],
      providerExecuted: true,
      providerMetadata: { acme: { n: 2 } },
    },
    { type: 'tool-result', toolCallId: 'srv2', toolName: 'code', result: 'half', preliminary: true },
    { type: 'tool-result', toolCallId: 'srv2', toolName: 'code', result: { code: 1 }, isError: true },
    { type: 'source', sourceType: 'url', id: 's1', url: 'https://h.example' },
    { type: 'tool-approval-request', approvalId: 'a1', toolCallId: 'srv3' },
    { type: 'something-new', data: new Uint8Array([0, 1, 2]) },
  ];

  it('MOD-9: keeps what the provider executed itself as inert parts: no call of ours', async () => {
    const reply = await aiSdkModel(new HandMadeModel(version, resultOf(version, executed))).generate(request());
    expect(reply.content.map(({ type }) => type)).toEqual(executed.map(() => 'opaque'));
    expect(reply.content[0]).toEqual({ type: 'opaque', value: { provider: 'acme.chat', part: executed[0] } });
    expect(reply.content.at(-1)).toEqual({
      type: 'opaque',
      value: { provider: 'acme.chat', part: { type: 'something-new', data: 'AAEC' } },
    });
  });

  it('MOD-9: gets them back in the form its specification wants', async () => {
    expect(await sentBack(version, [...executed, { type: 'text', text: 'Found.' }])).toEqual([
      {
        type: 'tool-call',
        toolCallId: 'srv1',
        toolName: 'web_search',
        input: { q: 'x' },
        providerExecuted: true,
        providerOptions: { acme: { n: 1 } },
      },
      {
        type: 'tool-result',
        toolCallId: 'srv1',
        toolName: 'web_search',
        output: { type: 'json', value: [{ url: 'u' }] },
        providerOptions: { acme: { n: 2 } },
      },
      { type: 'tool-result', toolCallId: 'srv2', toolName: 'code', output: { type: 'error-json', value: { code: 1 } } },
      { type: 'text', text: 'Found.' },
    ]);
  });

  it('B099: another provider never sees them: it would take them for calls of ours', async () => {
    expect(await sentBack(version, [...executed, { type: 'text', text: 'Found.' }], version, 'other.chat')).toEqual([
      { type: 'text', text: 'Found.' },
    ]);
    expect(await sentBack(version, executed, version, 'other.chat')).toEqual([
      { type: 'text', text: '(empty message)' },
    ]);
  });

  it.each([undefined, null, 'text', {}, { content: 'text' }])(
    'a result that is none (%j) is a failure that may pass',
    async (result) => {
      await expect(aiSdkModel(new HandMadeModel(version, result)).generate(request())).rejects.toMatchObject({
        code: 'MODEL_CALL_FAILED',
        retryable: true,
        message: expect.stringContaining('acme.chat:hand-made could not be used'),
      });
    },
  );
});

describe('Parts of one specification only', () => {
  const reasoningFile = {
    type: 'reasoning-file',
    mediaType: 'image/png',
    data: { type: 'data', data: new Uint8Array([0, 1, 2]) },
    providerMetadata: { acme: { s: 1 } },
  };
  const custom = { type: 'custom', kind: 'acme.compaction', providerMetadata: { acme: { encrypted: 'x' } } };

  it('go back to a v4 model', async () => {
    const byUrl = { ...reasoningFile, data: { type: 'url', url: new URL('https://h.example/r.png') } };
    expect(await sentBack('v4', [reasoningFile, byUrl, custom])).toEqual([
      {
        type: 'reasoning-file',
        mediaType: 'image/png',
        data: { type: 'data', data: 'AAEC' },
        providerOptions: { acme: { s: 1 } },
      },
      {
        type: 'reasoning-file',
        mediaType: 'image/png',
        data: { type: 'url', url: new URL('https://h.example/r.png') },
        providerOptions: { acme: { s: 1 } },
      },
      { type: 'custom', kind: 'acme.compaction', providerOptions: { acme: { encrypted: 'x' } } },
    ]);
  });

  it('are left out for an older one', async () => {
    expect(await sentBack('v4', [reasoningFile, custom, { type: 'text', text: 'So.' }], 'v3')).toEqual([
      { type: 'text', text: 'So.' },
    ]);
  });
});

describe('aiSdkModel', () => {
  it('takes the types of the AI SDK as they are', () => {
    const models = [{} as LanguageModelV2, {} as LanguageModelV3] satisfies AiSdkModel[];
    expect(models).toHaveLength(2);
  });

  it.each<[unknown, RegExp]>([
    ['openai/gpt-5', /was given a string/],
    [undefined, /was given undefined/],
    [null, /was given null/],
    [{ modelId: 'm' }, /"m" has no doGenerate/],
    [{ modelId: 'm', specificationVersion: 'v1', doGenerate: () => undefined }, /"m" has specificationVersion "v1"/],
    [{ doGenerate: () => undefined }, /specificationVersion undefined/],
  ])('refuses %j and says what to give', (model, message) => {
    expect(() => aiSdkModel(model as AiSdkModel)).toThrow(message);
    expect(() => aiSdkModel(model as AiSdkModel)).toThrow(/v2, v3 or v4/);
  });

  it('does not ask at all once the signal is aborted', async () => {
    const made = new HandMadeModel('v3', resultOf('v3', []));
    await expect(aiSdkModel(made).generate(request([], { signal: AbortSignal.abort() }))).rejects.toThrow(/aborted/);
    expect(made.calls).toEqual([]);
  });

  it('fails for good on a file whose URL is none', async () => {
    const made = new HandMadeModel('v3', resultOf('v3', []));
    const file: Message = { role: 'user', content: [{ type: 'file', mediaType: 'image/png', url: 'not a url' }] };
    await expect(aiSdkModel(made).generate(request([file]))).rejects.toMatchObject({ retryable: false });
    expect(made.calls).toEqual([]);
  });
});

describe('MOD-3: a reply of specification v2 without a finish reason', () => {
  const generate = (finishReason: string, body: unknown, content: unknown[] = [{ type: 'text', text: 'Hello' }]) =>
    aiSdkModel(new HandMadeModel('v2', resultOf('v2', content, { finishReason, response: { body } })), {
      missingFinishReason: 'accept',
    }).generate(request());
  const choice = (finish_reason: unknown) => ({ choices: [{ finish_reason }] });

  it('is accepted where the body shows that there was none', async () => {
    expect(await generate('unknown', choice(null))).toMatchObject({ finishReason: 'stop' });
    const call = { type: 'tool-call', toolCallId: 'c', toolName: 'pay', input: '{}' };
    expect(await generate('unknown', choice(undefined), [call])).toMatchObject({ finishReason: 'tool-calls' });
  });

  it('is not accepted where it is a word that the package did not tell, or may be one', async () => {
    expect(await generate('unknown', choice('network_error'))).toMatchObject({
      finishReason: 'error',
      finishDetail: 'network_error',
    });
    expect(await generate('unknown', choice('zany'))).toMatchObject({ finishReason: 'other', finishDetail: 'zany' });
    expect(await generate('unknown', undefined)).toMatchObject({ finishReason: 'unknown' });
    expect(await generate('other', choice(null))).toMatchObject({ finishReason: 'other' });
  });

  it.each(['yes', true, null])('missingFinishReason %j is a configuration error', (missingFinishReason) => {
    const made = new HandMadeModel('v3', resultOf('v3', []));
    expect(() => aiSdkModel(made, { missingFinishReason } as never)).toThrow(/missingFinishReason/);
  });
});
