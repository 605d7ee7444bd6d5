/** Whatever a field, an id or a parameter says, the answer is about the request: never a 500, and never a 503 where the store is well. */
import type { JsonValue } from '../../lib/contracts/json.js';
import { ALL_ENGINE_STORES } from '../support/stores.js';
import { ADAPTERS, type HttpHost, startHttpHost } from './http-host.js';

const clerk = { agent: 'clerk', prompt: 'say:ok' };
const user = (content: JsonValue) => ({ agent: 'clerk', messages: [{ role: 'user', content }] });
const history = (role: string, part: object) => ({
  agent: 'clerk',
  messages: [
    { role, content: [part] },
    { role: 'user', content: 'x' },
  ],
});
const called = (call: object, done: object) => ({
  agent: 'clerk',
  messages: [
    { role: 'assistant', content: [{ type: 'tool-call', callId: 'c', name: 't', ...call }] },
    {
      role: 'tool',
      content: [{ type: 'tool-result', callId: 'c', name: 't', outcome: 'success', output: 1, ...done }],
    },
    { role: 'user', content: 'x' },
  ],
});
const edit = { by: 'b', arguments: {} };

/** Each field of each body with a `HERE` in its place; paths are below `/agents/runs`. */
const FIELDS: [path: string, body: object][] = [
  ...['agent', 'version', 'prompt', 'messages', 'sessionId', 'requestId', 'runId', 'enqueue', 'budget', 'metadata'].map(
    (field): [string, object] => ['', { ...clerk, [field]: 'HERE' }],
  ),
  ['', { ...clerk, HERE: 1 }],
  ['', { ...clerk, budget: { maxTotalTokens: 'HERE' } }],
  ['', { ...clerk, metadata: { a: 'HERE' } }],
  ['', { ...clerk, metadata: { HERE: 1 } }],
  ['', { agent: 'clerk', messages: [{ role: 'HERE', content: 'x' }] }],
  ['', user('HERE')],
  ['', user([{ type: 'text', text: 'HERE' }])],
  ['', user([{ type: 'text', text: 'x', providerOptions: { a: 'HERE' } }])],
  ['', user([{ type: 'text', text: 'x', providerOptions: { HERE: 1 } }])],
  ['', user([{ type: 'file', mediaType: 'HERE', data: 'AAAA' }])],
  ['', user([{ type: 'file', mediaType: 'a/b', data: 'HERE' }])],
  ['', user([{ type: 'file', mediaType: 'a/b', data: 'AAAA', filename: 'HERE' }])],
  ['', history('system', { type: 'text', text: 'HERE' })],
  ['', history('assistant', { type: 'HERE' })],
  ['', history('assistant', { type: 'text', text: 'HERE' })],
  ['', history('assistant', { type: 'opaque', value: 'HERE' })],
  ['', history('assistant', { type: 'reasoning', text: 'x', providerOptions: { a: 'HERE' } })],
  ['', history('assistant', { type: 'file', mediaType: 'a/b', url: 'HERE' })],
  ...['arguments', 'rawArguments', 'originalCallId', 'provider', 'providerOptions', 'name'].map(
    (field): [string, object] => ['', called({ [field]: 'HERE' }, {})],
  ),
  ['', called({ arguments: { a: 'HERE' } }, {})],
  ...['output', 'outcome', 'edits', 'name', 'callId'].map((field): [string, object] => [
    '',
    called({}, { [field]: 'HERE' }),
  ]),
  ['', called({}, { edits: [{ ...edit, by: 'HERE' }] })],
  ['', called({}, { edits: [{ ...edit, note: 'HERE' }] })],
  ['', called({}, { edits: [{ ...edit, arguments: { a: 'HERE' } }] })],
  ['/ID/steer', { message: 'HERE' }],
  ['/ID/steer', { message: 'x', requestId: 'HERE' }],
  ...['resume', 'retry', 'cancel', 'interrupt', 'restart'].map((verb): [string, object] => [
    `/done/${verb}`,
    { reason: 'HERE' },
  ]),
  ['/done/restart', { prompt: 'HERE' }],
  ['/done/retry', { maxTurns: 'HERE' }],
  ['/done/resume', { budget: { maxTotalTokens: 'HERE' } }],
  ['/done/resume', { confirmation: { reason: 'HERE' } }],
  ['/done/budget', { decision: 'HERE' }],
  ['/done/budget', { decision: 'grant', amount: 'HERE' }],
  ['/done/budget', { decision: 'deny', note: 'HERE' }],
  ['/done/operations/resolve', { key: 'HERE', output: 1 }],
  ['/done/operations/resolve', { key: 'k', output: 'HERE' }],
  ['/done/operations/resolve', { key: 'k', error: { message: 'HERE' } }],
  ['/done/operations/resolve', { key: 'k', notHappened: 'HERE' }],
  ['/done/operations/resolve', { key: 'k', output: 1, note: 'HERE' }],
  ['/stuck/operations/resolve', { key: 'KEY', output: { a: 'HERE' } }],
  ['/asked/interactions/ASK', { action: 'accept', answers: { size: 'HERE', why: 'x' } }],
  ['/asked/interactions/ASK', { action: 'accept', answers: { HERE: 1 } }],
  ['/asked/interactions/ASK', { action: 'HERE' }],
  ['/paid/interactions/PAY', { decision: 'HERE' }],
  ['/paid/interactions/PAY', { decision: 'approve', arguments: { cents: 1, memo: 'HERE' } }],
  ['/paid/interactions/PAY', { decision: 'approve', arguments: 'HERE' }],
  ['/paid/interactions/PAY', { decision: 'deny', note: 'HERE' }],
];

/** Runs in the states that the routes tell apart, by the names that the paths above have for them. */
async function furnish({ post, get }: HttpHost) {
  const begin = async (runId: string, prompt: string) =>
    (await post('/agents/runs?wait=10', { agent: 'clerk', prompt, runId })).body;
  await begin('done', 'say:ok');
  const paid = await begin('paid', 'call:pay {"cents":5}');
  const asked = await begin('asked', 'call:inquire {}');
  await begin('stuck', 'call:stuck {}');
  const { operations } = (await get('/agents/runs/stuck/snapshot')).body;
  const names = { ID: 'paid', PAY: paid.interactions[0].id, ASK: asked.interactions[0].id, KEY: operations[0].key };
  return (text: string) => text.replace(/\b(?:ID|PAY|ASK|KEY)\b/g, (name) => names[name as keyof typeof names]);
}

const nested = `${'['.repeat(9_000)}${']'.repeat(9_000)}`;

describe.each(ADAPTERS)('On %s', (adapter) => {
  it('every field of every body is refused where it holds a number beyond all numbers, or 9,000 levels', async () => {
    const host = await startHttpHost({ adapter });
    const named = await furnish(host);
    const wrong: unknown[] = [];
    for (const [path, body] of FIELDS.filter(([, one]) => !('HERE' in one))) {
      const template = named(JSON.stringify(body));
      if (!template.includes('"HERE"') || template.includes('"HERE":')) continue;
      for (const value of ['1e400', '-9007199254740993', `{"a":${nested}}`]) {
        const sent = template.replace('"HERE"', () => value);
        const answer = await host.post(named(`/agents/runs${path}`), sent);
        if (answer.status !== 400 || answer.body.code !== 'INVALID_REQUEST')
          wrong.push([path, template, value.slice(0, 20), answer.status, answer.body.code]);
      }
    }
    expect(wrong).toEqual([]);
    await host.close();
  });
});

describe.each(ALL_ENGINE_STORES)('On $name', ({ open }) => {
  const TEXTS = ['a\0b', '\ud83d', 'r\u00e9', "' OR 1=1 --\\%"];
  const ALL_OF_THEM = TEXTS.join('');
  const base64 = (value: JsonValue) => Buffer.from(JSON.stringify(value)).toString('base64url');

  it('no text in a body, a path or a query is taken for trouble of the store', async () => {
    const { store, dispose } = await open();
    const host = await startHttpHost({ store });
    const named = await furnish(host);
    const wrong: unknown[] = [];
    const note = (status: number, ...request: unknown[]) => {
      if (status >= 500) wrong.push([status, ...request]);
      return status;
    };
    for (const [path, body] of FIELDS) {
      const sent = named(JSON.stringify(body)).replace('HERE', () => JSON.stringify(ALL_OF_THEM).slice(1, -1));
      note((await host.post(named(`/agents/runs${path}`), sent)).status, path, sent);
    }
    for (const text of TEXTS) {
      const value = encodeURIComponent(text.replaceAll('\ud83d', '\ud83d\udd11').replaceAll('\udd11\udd11', '\udd11'));
      for (const path of ['', '/snapshot', '/messages', '/events', '/budget', '/interactions/x'])
        note((await host.get(`/agents/runs/${value}${path}`)).status, path, text);
      note((await host.get(`/agents/sessions/${value}/messages`)).status, 'session', text);
      note((await host.get(`/agents/runs/done/interactions/${value}`)).status, 'interaction', text);
      for (const name of [
        'sessionId',
        'agent',
        'status',
        'phase',
        'metadata.a',
        'after',
        'limit',
        'runId',
        'approverRole',
      ])
        for (const list of ['runs', 'interactions'])
          note((await host.get(`/agents/${list}?${name}=${value}`)).status, list, name, text);
      for (const [list, cursor] of [
        ['runs', ['runs', 1, text]],
        ['interactions', ['interactions', 1, text, '1', 'a']],
        ['interactions', ['interactions', 1, 'a', text, 'a']],
        ['interactions', ['interactions', 1, 'a', '1', text]],
        ['runs', ['runs', -Number.MAX_SAFE_INTEGER, 'a']],
        ['runs', ['runs', Number.MAX_SAFE_INTEGER, 'a']],
      ] as const)
        note((await host.get(`/agents/${list}?after=${base64([...cursor])}`)).status, list, cursor);
    }
    const filters = (count: number) => Array.from({ length: count }, (_, n) => `metadata.k${n}=v`).join('&');
    for (const list of ['runs', 'interactions']) {
      expect(note((await host.get(`/agents/${list}?${filters(16)}`)).status)).toBe(200);
      expect(note((await host.get(`/agents/${list}?${filters(60)}`)).status)).toBe(400);
    }
    expect(wrong).toEqual([]);
    await host.close();
    await dispose();
  });
});
