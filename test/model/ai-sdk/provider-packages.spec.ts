/**
 * Bad answers of providers, as they were seen, through the AI SDK package of each provider and a whole run. The network alone is replaced: by the `fetch`
 * option that the packages have for it.
 */
import { readFileSync } from 'node:fs';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { JsonObject } from '../../../lib/contracts/json.js';
import type { ToolDefinition } from '../../../lib/contracts/agent-definition.js';
import { aiSdkModel, type AiSdkModelOptions } from '../../../lib/model/ai-sdk/ai-sdk-model.js';
import type { AiSdkModel } from '../../../lib/model/ai-sdk/ai-sdk-types.js';
import { MemoryRunStore } from '../../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, stopEngines, tool } from '../../support/engine-harness.js';
import { entriesOf } from '../../support/journal-of.js';

afterEach(stopEngines);

type Body = Record<string, unknown>;
const payload = <T>(name: string) =>
  JSON.parse(readFileSync(new URL(`payloads/${name}.json`, import.meta.url), 'utf8')) as T;

type Package = (options: { apiKey: string; baseURL: string; fetch: typeof fetch }) => AiSdkModel;

/** By its name, so that the type check need not read the declarations of every provider. */
async function load(name: string, create: string, modelId = 'm'): Promise<Package> {
  const found = (await import(`@ai-sdk/${name}`)) as Record<string, (options: object) => (id: string) => AiSdkModel>;
  return (options) => found[create]!(options)(modelId);
}

const chatPackages: Record<string, Package> = {
  'openai-compatible': (options) => createOpenAICompatible({ name: 'acme', ...options })('m'),
  mistral: await load('mistral', 'createMistral'),
  groq: await load('groq', 'createGroq'),
  deepseek: await load('deepseek', 'createDeepSeek'),
};
const google = await load('google', 'createGoogleGenerativeAI', 'gemini-2.5-flash');
const anthropic = await load('anthropic', 'createAnthropic', 'claude-sonnet-4-5');

interface Answer {
  status?: number;
  body: unknown;
}

/** A run with a tool `refund` that must never be executed because of a bad reply, on a provider that gives these answers one after the other. */
async function runOn(make: Package, answers: Answer[], options: AiSdkModelOptions = {}, definition = {}) {
  const requests: JsonObject[] = [];
  const model = make({
    apiKey: 'k',
    baseURL: 'https://provider.example/v1',
    fetch: (_url, init) => {
      requests.push(JSON.parse(init?.body as string) as JsonObject);
      const { status = 200, body } = answers[requests.length - 1] ?? { status: 404, body: { error: 'no answer left' } };
      const headers = { 'content-type': 'application/json' };
      return Promise.resolve(new Response(JSON.stringify(body), { status, headers }));
    },
  });
  let refunds = 0;
  const refund: ToolDefinition = tool('refund', () => ++refunds, { recovery: 'manual' });
  const store = new MemoryRunStore();
  const engine = await engineOver(store, agent(aiSdkModel(model, options), [refund], definition));
  const run = await engine.runs.startAndWait({ agent: 'support', prompt: 'hello' });
  const failed = await entriesOf(store, run.id, 'model.attempt_failed');
  return { run, requests, refunds, failed };
}

const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const completion = (message: object, finish_reason: unknown): Answer => ({
  body: {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message, finish_reason }],
    usage,
  },
});
const good = completion({ role: 'assistant', content: 'Fine.' }, 'stop');
const goodGemini: Answer = {
  body: {
    candidates: [{ content: { role: 'model', parts: [{ text: 'Fine.' }] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
  },
};
const goodClaude = (content: object[], stop_reason: string): Answer => ({
  body: {
    id: 'm',
    type: 'message',
    role: 'assistant',
    model: 'claude',
    content,
    stop_reason,
    usage: { input_tokens: 10, output_tokens: 5 },
  },
});

describe.each(Object.entries(chatPackages))('@ai-sdk/%s', (name, make) => {
  const replies = payload<{ sensitive: Record<string, Body>; network_error: Record<string, Body> }>('R202');
  const passing: [string, Body][] = [
    ...Object.entries(payload<Record<string, Body>>('R201')).map(([kind, body]): [string, Body] => [
      `R201 ${kind}`,
      body,
    ]),
    ...Object.entries(replies.network_error).map(([kind, body]): [string, Body] => [
      `R202 network_error ${kind}`,
      body,
    ]),
    ...Object.entries(payload<{ compatible: Record<string, Body> }>('R204').compatible).map(
      ([kind, body]): [string, Body] => [`R204 ${kind}`, body],
    ),
    ...Object.entries(payload<Record<string, Body>>('R206')).map(([kind, body]): [string, Body] => [
      `R206 ${kind}`,
      body,
    ]),
    ['R209', payload<Body>('R209')],
  ];

  it.each(passing)(
    '%s is a failed attempt: nothing of it is executed or answered, and it is asked again',
    async (_, body) => {
      const { run, requests, refunds, failed } = await runOn(make, [{ body }, good]);
      expect({ status: run.status, output: run.output, refunds }).toEqual({
        status: 'completed',
        output: 'Fine.',
        refunds: 0,
      });
      expect(requests).toHaveLength(2);
      expect(requests[1]).toEqual(requests[0]);
      expect(failed).toMatchObject([{ error: { retryable: true } }]);
    },
  );

  it.each(Object.entries(replies.sensitive))('R202: sensitive is a refusal: %s', async (_, body) => {
    const { run, requests, refunds } = await runOn(make, [{ body }, good]);
    expect(run).toMatchObject({ status: 'failed', error: { code: 'MODEL_REFUSED' }, usage: { totalTokens: 15 } });
    expect(run.error?.message).toContain('sensitive');
    expect({ requests: requests.length, refunds }).toEqual({ requests: 1, refunds: 0 });
  });

  const call = { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'refund', arguments: '{}' } }] }; // prettier-ignore

  it.each([null, undefined])(
    'a finish reason that is %s is a failed attempt that names the option for it',
    async (reason) => {
      const { run, refunds, failed } = await runOn(make, [completion(call, reason), good]);
      expect({ output: run.output, refunds }).toEqual({ output: 'Fine.', refunds: 0 });
      expect(failed[0]?.error.message).toContain("missingFinishReason: 'accept'");
    },
  );

  it("with missingFinishReason: 'accept' a reply without a finish reason is judged by its content", async () => {
    const accept = { missingFinishReason: 'accept' } as const;
    const nothing = completion({ role: 'assistant', content: null }, null);
    const answer = completion({ role: 'assistant', content: 'Fine.' }, null);
    const first = await runOn(make, [completion(call, null), nothing, answer], accept);
    // After a tool an empty reply that cost tokens ends the run without an output.
    expect({ status: first.run.status, output: first.run.output, refunds: first.refunds }).toEqual({ status: 'completed', output: undefined, refunds: 1 }); // prettier-ignore
    const second = await runOn(make, [nothing, answer], accept);
    expect(second.run).toMatchObject({ status: 'completed', output: 'Fine.' });
    expect(second.failed).toHaveLength(1);
    const third = await runOn(make, [completion(call, 'network_error'), good], accept);
    expect({ output: third.run.output, refunds: third.refunds }).toEqual({ output: 'Fine.', refunds: 0 });
  });

  it('R201: tells the error that a gateway put beside the fragment, without its secrets', async () => {
    const body = structuredClone(payload<Record<string, any>>('R201').withErrorOnTheChoice);
    body.choices[0].error.message = 'Upstream died, key sk-live-0123456789abcdef0123456789';
    const { failed } = await runOn(make, [{ body }, good]);
    expect(failed[0]?.error.message).toMatch(/: Upstream died/);
    expect(failed[0]?.error.message).not.toContain('0123456789abcdef');
  });

  it('tells which word it was', async () => {
    const { failed } = await runOn(make, [completion(call, 'insufficient_system_resource'), good]);
    expect(failed[0]).toMatchObject({ finishReason: 'error', usage: { totalTokens: 15 } });
    expect(failed[0]?.error.message).toContain('insufficient_system_resource');
  });

  it.each(Object.entries(payload<Record<string, unknown>>('R221')))(
    'R221: says what the provider said: %s',
    async (kind, body) => {
      const { run, requests } = await runOn(make, [{ status: kind === 'fastapi' ? 422 : 400, body }, good]);
      expect(requests).toHaveLength(1);
      expect(run.error?.message).toMatch(
        /maximum context length|tools: extra fields not permitted|missing a thought_signature/,
      );
    },
  );

  if (name === 'groq')
    it('R211: an output of the model that was no call is drawn again', async () => {
      const { run, requests } = await runOn(make, [payload<Answer>('R211'), good]);
      expect(run).toMatchObject({ status: 'completed', output: 'Fine.' });
      expect(requests).toHaveLength(2);
    });
});

describe('@ai-sdk/google', () => {
  const replies = payload<{ google: { candidates: { finishReason: string; content: { parts: object[] } }[] }[] }>(
    'R204',
  ).google;
  const cases = replies.map((body): [string, Body] => [
    body.candidates[0]?.finishReason ?? '',
    body as unknown as Body,
  ]);
  const parts: [string, object[]][] = [
    ['nothing', []],
    ['half a text', [{ text: 'Half an ans' }]],
    ['a call', [{ functionCall: { name: 'refund', args: { cents: 5 } } }]],
  ];

  it.each(
    cases.flatMap(([reason, body]) =>
      parts.map(([what, given]): [string, string, Body, object[]] => [reason, what, body, given]),
    ),
  )('R204: %s with %s is a failed attempt, asked again', async (_reason, _what, body, given) => {
    const bad = structuredClone(body) as unknown as (typeof replies)[number];
    for (const candidate of bad.candidates) candidate.content.parts = given;
    const { run, requests, refunds } = await runOn(google, [{ body: bad }, goodGemini]);
    expect({ status: run.status, output: run.output, refunds }).toEqual({
      status: 'completed',
      output: 'Fine.',
      refunds: 0,
    });
    expect(requests).toHaveLength(2);
  });

  it('a prompt that was blocked is not asked again', async () => {
    const body = { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 10 } };
    const { run, requests } = await runOn(google, [{ body }, goodGemini]);
    expect(requests).toHaveLength(1);
    expect(run).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('SAFETY') } });
  });
});

describe('@ai-sdk/anthropic', () => {
  it('R208: a paused turn goes back as it came, and goes on', async () => {
    const done = goodClaude([{ type: 'text', text: 'Found.' }], 'end_turn');
    const { run, requests } = await runOn(anthropic, [{ body: payload('R208') }, done]);
    expect(run).toMatchObject({ status: 'completed', output: 'Found.', turn: 2, usage: { totalTokens: 30 } });
    const [, assistant] = requests[1]?.messages as { role: string; content: object[] }[];
    expect(assistant).toMatchObject({
      role: 'assistant',
      content: [
        { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } },
        { type: 'text', text: 'Searching' },
      ],
    });
  });

  it.each([
    ['refusal', 'MODEL_REFUSED'],
    ['max_tokens', 'OUTPUT_TRUNCATED'],
    ['model_context_window_exceeded', 'OUTPUT_TRUNCATED'],
  ])('a call in a reply that ended with %s is not executed', async (reason, code) => {
    const call = { type: 'tool_use', id: 'toolu_1', name: 'refund', input: {} };
    const { run, refunds } = await runOn(anthropic, [goodClaude([call], reason)]);
    expect({ code: run.error?.code, refunds }).toEqual({ code, refunds: 0 });
  });
});
