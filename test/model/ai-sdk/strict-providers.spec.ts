/** Call ids and tool names on the wire, over stubs that are as strict as the providers they stand for. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { aiSdkModel } from '../../../lib/model/ai-sdk/ai-sdk-model.js';
import type { ModelClient } from '../../../lib/contracts/ports/model-client.port.js';
import { MemoryRunStore } from '../../../lib/stores/memory/memory-run.store.js';
import { agent, engineOver, stopEngines, tool } from '../../support/engine-harness.js';
import type { WireBody, WireMessage } from '../../support/model-server.js';

afterEach(stopEngines);

interface Call {
  id?: string;
  name?: string;
  args?: object;
}
type Reply = string | Call[];
/** Why a request is answered 400; null = it is not. */
type Strictness = (body: WireBody, given: readonly Call[]) => string | null;

/** A provider that answers by a script, one reply per request that it accepts. */
function provider(name: string, script: Reply[], refuses: Strictness): ModelClient & { bodies: WireBody[] } {
  const bodies: WireBody[] = [];
  const given: Call[] = [];
  const respond = (status: number, body: object) =>
    Promise.resolve(new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } }));
  const { chatModel } = createOpenAICompatible({
    name,
    baseURL: `https://${name}.example/v1`,
    fetch: (_url, init) => {
      const body = JSON.parse(init?.body as string) as WireBody;
      bodies.push(body);
      const message = duplicate(body) ?? refuses(body, given);
      if (message !== null) return respond(400, { error: { message, code: 400 } });
      const reply = script.shift() ?? 'end of script';
      if (typeof reply !== 'string') given.push(...reply);
      return respond(200, completion(reply));
    },
  });
  return Object.assign(aiSdkModel(chatModel('m')), { bodies });
}

function completion(reply: Reply): object {
  const message =
    typeof reply === 'string'
      ? { role: 'assistant', content: reply }
      : {
          role: 'assistant',
          content: null,
          tool_calls: reply.map(({ id, name = 'look', args = {} }) => ({
            id,
            type: 'function',
            function: { name, arguments: JSON.stringify(args) },
          })),
        };
  return {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message, finish_reason: typeof reply === 'string' ? 'stop' : 'tool_calls' }],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  };
}

const callsIn = (messages: readonly WireMessage[]) => messages.flatMap(({ tool_calls }) => tool_calls ?? []);
const idsIn = ({ messages }: WireBody) => callsIn(messages).map(({ id }) => id);
const resultsIn = ({ messages }: WireBody) => messages.flatMap(({ tool_call_id }) => tool_call_id ?? []);

/** Of every provider: no id twice, and one result per call, in call order. */
function duplicate(body: WireBody): string | null {
  const ids = idsIn(body);
  if (new Set(ids).size < ids.length) return `a tool call id was used twice: ${ids.join(', ')}`;
  return resultsIn(body).join() === ids.join() ? null : 'the results do not answer the calls one by one';
}

const byteForByte: Strictness = (body, given) => {
  const back = idsIn(body).slice(-given.length);
  return given.every(({ id }, index) => back[index] === id)
    ? null
    : 'Function call is missing a thought_signature in functionCall parts.';
};

const nineAlphanumerics: Strictness = (body) => {
  const bad = [...idsIn(body), ...resultsIn(body)].find((id) => !/^[a-zA-Z0-9]{9}$/.test(id));
  return bad === undefined ? null : `Tool call id was ${bad} but must be a-z, A-Z, 0-9, with a length of 9.`;
};

const toolNames: Strictness = ({ messages }) => {
  const bad = callsIn(messages).find(({ function: { name } }) => !/^[a-zA-Z0-9_-]{1,64}$/.test(name));
  return bad ? `messages.tool_calls.function.name: '${bad.function.name}' does not match the pattern` : null;
};

const world = async (
  model: ModelClient,
  store = new MemoryRunStore(),
  looked: unknown[] = [],
): Promise<{ runs: Awaited<ReturnType<typeof engineOver>>['runs']; looked: unknown[]; store: MemoryRunStore }> => {
  const look = tool('look', (input) => (looked.push(input), { ok: true }));
  const { runs } = await engineOver(store, agent(model, [look]));
  return { runs, looked, store };
};
const prompt = { agent: 'support', prompt: 'look', sessionId: 's' };
const completed = { status: 'completed' };

it('R212: ids such as functions.look:0 go back to the model that counts on them, in this run and the next of its session', async () => {
  const script: Reply[] = [
    [
      { id: 'functions.look:0', args: { q: 'a' } },
      { id: 'functions.look:1', args: { q: 'b' } },
    ],
    [{ id: 'functions.look:2', args: { q: 'c' } }],
    'done',
    'again',
  ];
  const model = provider('kimi', script, byteForByte);
  const { runs, looked } = await world(model);
  expect(await runs.startAndWait(prompt)).toMatchObject(completed);
  expect(looked).toEqual([{ q: 'a' }, { q: 'b' }, { q: 'c' }]);
  expect(await runs.startAndWait(prompt)).toMatchObject({ ...completed, output: 'again' });
  expect(idsIn(model.bodies.at(-1)!)).toEqual(['functions.look:0', 'functions.look:1', 'functions.look:2']);
});

it('R212: a run that starts over does not take the ids of what it left behind for its own', async () => {
  const ids = () => [[{ id: 'functions.look:0' }], 'done'] satisfies Reply[];
  const model = provider('kimi', [...ids(), ...ids()], () => null);
  const { runs } = await world(model);
  const { id } = await runs.startAndWait(prompt);
  await runs.restart(id);
  expect(await runs.result(id)).toMatchObject(completed);
  expect(model.bodies.map(idsIn)).toEqual([[], ['functions.look:0'], [], ['functions.look:0']]);
});

it('R213: a signature that a gateway put into the id comes back byte for byte, also from another process', async () => {
  const id = `call_0f1e2d3c__thought__EtwCCtkCAdHtim9${'A1b2C3d4'.repeat(400)}+/=`;
  const gated = [tool('look', () => ({ ok: true }), { asks: () => ({}) })];
  const store = new MemoryRunStore();
  const first = await engineOver(store, agent(provider('litellm', [[{ id }]], byteForByte), gated));
  const run = await first.runs.startAndWait(prompt);
  expect(run).toMatchObject({ status: 'waiting', interactions: [{ callId: id }] });
  await first.stop();
  const model = provider('litellm', ['done'], (body) => (idsIn(body).includes(id) ? null : 'missing signature'));
  const second = await engineOver(store, agent(model, gated));
  await second.runs.respond(run.id, run.interactions[0]!.id, { decision: 'approve', by: 'bob' });
  expect(await second.runs.result(run.id)).toMatchObject(completed);
  expect(resultsIn(model.bodies[0]!)).toEqual([id]);
});

it.each<[string, Call[]]>([
  ['the word null', [{ id: 'null' }]],
  ['nothing', [{ id: '' }]],
  ['the same good id twice', [{ id: 'aB3dE6gH9' }, { id: 'aB3dE6gH9' }]],
])('R214: a reply of Mistral with %s as id goes on', async (_, calls) => {
  const model = provider('mistral', [calls, [{ id: 'bB3dE6gH9' }], 'done'], nineAlphanumerics);
  const { runs, looked } = await world(model);
  expect(await runs.startAndWait(prompt)).toMatchObject(completed);
  expect(looked).toHaveLength(calls.length + 1);
});

it('R214: a session that changes its provider keeps the ids of each side to itself', async () => {
  const { runs: atOpenAi, store } = await world(
    provider('openai', [[{ id: 'call_Zk3yBbAoFsjjBPtLrKDvqMr1' }], 'one'], byteForByte),
  );
  expect(await atOpenAi.startAndWait(prompt)).toMatchObject(completed);
  const mistral = provider('mistral', [[{ id: 'aB3dE6gH9' }], 'two', 'three'], nineAlphanumerics);
  const { runs: atMistral } = await world(mistral, store);
  expect(await atMistral.startAndWait(prompt)).toMatchObject({ ...completed, output: 'two' });
  expect(await atMistral.startAndWait(prompt)).toMatchObject({ ...completed, output: 'three' });
  expect(new Set(mistral.bodies.map((body) => idsIn(body)[0])).size).toBe(1);
  const back = provider('openai', ['four'], (body) =>
    idsIn(body).includes('call_Zk3yBbAoFsjjBPtLrKDvqMr1') ? null : 'unknown id',
  );
  expect(await (await world(back, store)).runs.startAndWait(prompt)).toMatchObject({ ...completed, output: 'four' });
});

it('R214: a gateway to models of several makers can be told apart', async () => {
  const { chatModel } = createOpenAICompatible({ name: 'gateway', baseURL: 'https://gateway.example/v1' });
  expect(aiSdkModel(chatModel('a')).provider).toBe('gateway.chat');
  expect(aiSdkModel(chatModel('a'), { provider: 'gateway/mistral' }).provider).toBe('gateway/mistral');
});

it.each(['functions.look', 'look ', 'lооk', 'l'.repeat(200), ' ', 'look\n'])(
  'MOD-4: the invented tool name %j goes back as a safe one; the journal keeps what was said',
  async (name) => {
    const model = provider('openai', [[{ id: 'call_1', name }], 'sorry', 'next'], toolNames);
    const { runs, looked } = await world(model);
    const run = await runs.startAndWait(prompt);
    expect(run).toMatchObject({ ...completed, output: 'sorry' });
    expect(looked).toEqual([]);
    expect(callsIn(model.bodies[1]!.messages)[0]!.function.name).not.toBe('look');
    const parts = (await runs.messages(run.id)).slice(1, 3).flatMap(({ content }): unknown[] => [...content]);
    expect(parts).toMatchObject([
      { type: 'tool-call', name },
      { type: 'tool-result', name, outcome: 'unknown_tool' },
    ]);
    expect(await runs.startAndWait(prompt)).toMatchObject({ ...completed, output: 'next' });
  },
);
