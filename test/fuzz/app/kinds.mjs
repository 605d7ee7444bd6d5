/** One case of each kind: draws an input, lets the application have it, and says what must hold whatever the input was. */
import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { AgentRunsError } from 'nestjs-agent-runs';
import { stringify } from './chance.mjs';
import { executed, script } from './host.mjs';
import { turns } from './loop-turns.mjs';

const PAYMENT_TOOLS = ['pay_dto', 'pay_zod', 'pay_json', 'approved', 'anything'];
/** Words for an ending after which a reply counts, of any provider. */
const GOOD_ENDINGS = [
  'stop',
  'tool_calls',
  'function_call',
  'end_turn',
  'stop_sequence',
  'tool_use',
  'eos',
  'tool-calls',
];
const BAD_ENDINGS = [
  'error',
  'network_error',
  'sensitive',
  'malformed_function_call',
  'abort',
  'content_filter',
  'other',
];
const ATTENTION = ['uncertain_outcome', 'limit', 'input_drift', 'unserialisable_result'];

/** Characters of input that the current case has given. */
export const given = { size: 0 };

function prepare() {
  given.size = 0;
  executed.length = 0;
  script.bodies = [];
  script.replies = [];
}

/** Queues an answer of the chat endpoint. */
function answer(body, more = {}) {
  given.size += body.length;
  script.bodies.push({ body, ...more });
}

/** What holds of every run, whatever its model said. */
async function settle(host, runId) {
  const run = await host.runs.result(runId, { timeout: '20s' });
  assert.ok(['settled', 'suspended'].includes(run.phase), `the run is still ${run.status} after 20 s`);
  if (run.status === 'needs_attention')
    assert.ok(ATTENTION.includes(run.attention.reason), `needs attention: ${JSON.stringify(run.attention)}`);
  assert.notEqual(run.error?.code, 'STORE_BROKEN', JSON.stringify(run.error));
  for (const { tool, isValid, input } of executed)
    assert.ok(isValid, `${tool} was executed with ${stringify(input).slice(0, 300)}`);
  for (const read of ['messages', 'snapshot', 'events']) {
    await new Promise(setImmediate);
    await host.runs[read](runId);
  }
  if (run.phase !== 'settled') await host.runs.cancel(runId, {});
  return run;
}

const callTo = (name, args, id = 'c1') => ({ id, type: 'function', function: { name, arguments: args } });

function chatReply({ content = null, calls = [], ending }) {
  return {
    id: 'chatcmpl-1',
    created: 1,
    model: 'm',
    choices: [
      {
        index: 0,
        finish_reason: ending ?? (calls.length > 0 ? 'tool_calls' : 'stop'),
        message: { role: 'assistant', content, ...(calls.length > 0 && { tool_calls: calls }) },
      },
    ],
    usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7, prompt_tokens_details: { cached_tokens: 1 } },
  };
}

const payment = (chance) => ({
  cents: 1 + chance.below(1_000),
  to: 'bob',
  ...(chance.is(0.3) && { note: chance.text(900) }),
});

function reply(chance) {
  const calls = Array.from({ length: chance.below(4) }, (_, index) =>
    callTo(
      chance.is(0.9) ? chance.pick(PAYMENT_TOOLS) : chance.text(300),
      chance.jsonText(payment(chance)),
      chance.is(0.8) ? `c${index}` : chance.text(300),
    ),
  );
  const ending = chance.is(0.6)
    ? undefined
    : chance.is(0.8)
      ? chance.pick([...GOOD_ENDINGS, ...BAD_ENDINGS])
      : chance.text(60);
  return chatReply({ content: chance.is(0.5) ? chance.text(20_000) : null, calls, ending });
}

/** As a host's own client would give it, right or wrong. */
function clientReply(chance) {
  const content = Array.from({ length: chance.below(4) }, (_, index) =>
    chance.is(0.5)
      ? { type: 'text', text: chance.text(1_000) }
      : {
          type: 'tool-call',
          callId: `c${index}`,
          name: chance.pick(PAYMENT_TOOLS),
          argumentsText: chance.jsonText(payment(chance)),
        },
  );
  const value = {
    content,
    finishReason: chance.pick(['stop', 'tool-calls', 'length', 'content-filter', 'refusal', 'error', 'other']),
    usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
  };
  if (chance.is(0.1)) return chance.pick([null, 7, 'text', [], () => 1, Symbol('x'), new Map(), 10n, value.content]);
  if (chance.is(0.15)) {
    const thrown = chance.pick([
      new TypeError('x is not a function'),
      Object.assign(new Error('bad'), { status: chance.pick(['429', null, {}, Number.NaN, 503, 400]) }),
      chance.json(2) ?? 'nothing',
      Object.create(null),
      {
        get message() {
          throw new Error('getter');
        },
      },
    ]);
    return { thrown };
  }
  return chance.is(0.6) ? chance.mutated(value) : value;
}

/** @returns whether one of the replies may be acted upon */
function scriptReplies(chance, ofClient) {
  let isAnyGood = false;
  for (let turn = 1 + chance.below(3); turn > 0; turn--) {
    if (ofClient) {
      const next = clientReply(chance);
      isAnyGood ||= ['stop', 'tool-calls'].includes(next?.finishReason);
      script.replies.push(next);
      continue;
    }
    const whole = reply(chance);
    const value = chance.is(0.6) ? chance.mutated(whole) : whole;
    const text = chance.jsonText(value);
    // Damaged text is judged by what a reader can still make of it.
    isAnyGood ||= text !== stringify(value) || GOOD_ENDINGS.includes(value?.choices?.[0]?.finish_reason);
    answer(text, {
      status: chance.is(0.9) ? 200 : chance.pick([204, 400, 401, 429, 500, 503]),
      type: chance.is(0.95) ? 'application/json' : 'text/html',
    });
  }
  return isAnyGood;
}

async function replies(host, chance) {
  prepare();
  const ofClient = chance.is(0.4);
  const isAnyGood = await turns.uncounted(() => scriptReplies(chance, ofClient));
  const { id } = await host.runs.start({ agent: ofClient ? 'client' : 'sdk', prompt: 'Go.' });
  const run = await settle(host, id);
  if (!isAnyGood) assert.deepEqual(executed, [], `calls of replies that ended badly were executed (${run.status})`);
}

const SCHEMA_WORDS = [
  'type',
  'enum',
  'const',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'required',
  'properties',
  'items',
  'format',
  '$ref',
  '$async',
  'pattern',
  'patternProperties',
  'anyOf',
  'not',
  '$id',
  '$schema',
  'if',
  'additionalProperties',
  'minItems',
  'uniqueItems',
  'multipleOf',
];
const TYPES = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'];

function schema(chance, depth = 4) {
  if (chance.is(0.03)) return chance.bulk();
  const made = {};
  for (let words = 1 + chance.below(4); words > 0; words--) {
    const word = chance.pick(SCHEMA_WORDS);
    const nested = () => (depth > 0 && chance.is(0.6) ? schema(chance, depth - 1) : chance.json(1));
    made[word] =
      word === 'type'
        ? chance.is(0.8)
          ? chance.pick(TYPES)
          : chance.json(1)
        : word === '$async'
          ? true
          : word === 'pattern'
            ? chance.pick(['^(a+)+$', '(', '^a$', '(x*)*y', '\\p{L}+$'])
            : word === '$ref'
              ? chance.pick(['#', 'http://json-schema.org/draft-07/schema', '#/properties/a', 'file:///etc/passwd'])
              : word === 'format'
                ? chance.pick(['email', 'date-time', 'uri', 'regex', 'nonsense'])
                : word === 'properties' || word === 'patternProperties'
                  ? { a: nested(), [chance.is(0.3) ? '^(b+)+$' : 'b']: nested() }
                  : word === 'required'
                    ? ['a']
                    : word === 'anyOf'
                      ? [nested(), nested()]
                      : ['items', 'not', 'if', 'additionalProperties'].includes(word)
                        ? nested()
                        : chance.json(2);
  }
  return made;
}

function scriptQuestions(chance) {
  const questions = Array.from({ length: 1 + chance.below(3) }, (_, index) => ({
    id: chance.is(0.95) ? `q${index}` : chance.text(50),
    text: chance.is(0.95) ? 'Which?' : chance.text(50),
    ...(chance.is(0.9) && { schema: schema(chance) }),
    ...(chance.is(0.1) && { choices: chance.json(2) }),
  }));
  answer(stringify(chatReply({ calls: [callTo('ask_user', chance.jsonText({ questions }))] })));
}

async function schemas(host, chance) {
  prepare();
  await turns.uncounted(() => scriptQuestions(chance));
  const { id } = await host.runs.start({ agent: 'sdk', prompt: 'Go.' });
  const run = await host.runs.result(id, { timeout: '20s' });
  for (const { id: interactionId, questions: asked } of run.interactions) {
    for (let tries = 3; tries > 0; tries--) {
      const answers = await turns.uncounted(() => drawAnswers(chance, asked ?? []));
      await refusedOrDone(host.runs.respond(id, interactionId, { action: 'accept', by: 'alice', answers }));
    }
  }
  await settle(host, id);
}

function drawAnswers(chance, asked) {
  const answers = Object.fromEntries(
    asked.map(({ id }) => [
      id,
      chance.is(0.05) ? chance.bulk() : chance.is(0.2) ? 'a'.repeat(30) + '!' : chance.json(3),
    ]),
  );
  given.size += stringify(answers).length;
  return answers;
}

/** A refusal of a request is an answer; anything else is a fault. */
async function refusedOrDone(promise) {
  try {
    return await promise;
  } catch (error) {
    assert.ok(AgentRunsError.is(error) && error.family === 'request', `refused by ${error?.stack ?? error}`);
    return null;
  }
}

function drawArguments(chance) {
  if (chance.is(0.5)) return chance.mutated(payment(chance));
  return chance.is(0.05) ? chance.bulk() : chance.object(4);
}

function scriptCalls(chance) {
  const calls = Array.from({ length: 1 + chance.below(3) }, (_, index) => {
    const text = chance.is(0.2) ? stringify(payment(chance)) : chance.jsonText(drawArguments(chance));
    return callTo(chance.pick(PAYMENT_TOOLS), text, `c${index}`);
  });
  answer(stringify(chatReply({ calls })));
}

function drawDecision(chance) {
  const edited = chance.is(0.7) ? { arguments: drawArguments(chance) } : {};
  given.size += stringify(edited).length;
  return { decision: 'approve', by: 'alice', ...edited };
}

async function args(host, chance) {
  prepare();
  await turns.uncounted(() => scriptCalls(chance));
  const { id } = await host.runs.start({ agent: 'sdk', prompt: 'Go.' });
  const run = await host.runs.result(id, { timeout: '20s' });
  for (const { id: interactionId } of run.interactions) {
    const decision = await turns.uncounted(() => drawDecision(chance));
    if (!(await refusedOrDone(host.runs.respond(id, interactionId, decision))))
      await host.runs.respond(id, interactionId, { decision: 'deny', by: 'alice' });
  }
  await settle(host, id);
}

const RUN_ROUTES = ['', '/snapshot', '/messages', '/events', '/budget', '/interactions/X', '/trajectory'];
const VERBS = [
  'resume',
  'retry',
  'cancel',
  'interrupt',
  'restart',
  'steer',
  'operations/resolve',
  'budget',
  'interactions/X',
];
const BODIES = [
  {
    agent: 'client',
    prompt: 'Go.',
    sessionId: 's1',
    requestId: 'r1',
    metadata: { a: 1 },
    budget: { maxTotalTokens: 5 },
  },
  {
    agent: 'client',
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Go.', providerOptions: { a: { b: 1 } } }] }],
  },
  {
    agent: 'sdk',
    messages: [
      { role: 'user', content: [{ type: 'image', image: 'AAAA', mediaType: 'image/png' }] },
      { role: 'assistant', content: [{ type: 'tool-call', callId: 'c', name: 'pay', arguments: { a: 1 } }] },
      { role: 'user', content: 'x' },
    ],
  },
  { decision: 'approve', note: 'fine', arguments: { cents: 1, to: 'bob' } },
  { action: 'accept', answers: { q0: 'a' } },
  { key: 'r1.m1.t0', output: { a: 1 }, note: 'n' },
  { message: 'more', requestId: 'x' },
  { reason: 'because', prompt: 'again', allowRunningTakeover: true },
  { decision: 'grant', amount: 5 },
  { key: 'r1.m1.t0', error: { message: 'no' } },
  { key: 'r1.m1.t0', notHappened: true },
  { reason: 'because', maxTurns: 9, budget: { maxTotalTokens: 9 }, confirmation: { reason: 'gone' } },
  {
    agent: 'client',
    messages: [
      { role: 'user', content: [{ type: 'file', data: 'AAAA', mediaType: 'text/plain', filename: 'a.txt' }] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Well.' },
          { type: 'reasoning', text: 'Hm.' },
          { type: 'file', url: 'https://example.com/a.png', mediaType: 'image/png' },
          { type: 'opaque', provider: 'p', value: { a: 1 } },
          {
            type: 'tool-call',
            callId: 'c',
            name: 'pay',
            arguments: {},
            rawArguments: '{}',
            originalCallId: 'x',
            provider: 'p',
          },
        ],
      },
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            callId: 'c',
            name: 'pay',
            outcome: 'success',
            output: 1,
            edits: [{ by: 'bob', note: 'less', arguments: { cents: 1 } }],
          },
        ],
      },
      { role: 'user', content: 'Go on.' },
    ],
  },
];
const connections = new Agent({ keepAlive: true, maxSockets: 4 });

/** Runs in the states that the routes tell apart. */
export async function furnish(host) {
  prepare();
  const done = await host.runs.startAndWait({ agent: 'client', prompt: 'Go.' });
  answer(JSON.stringify(chatReply({ calls: [callTo('approved', '{"cents":5,"to":"bob"}')] })));
  const waiting = await host.runs.startAndWait({ agent: 'sdk', prompt: 'Go.', sessionId: 's1' });
  const asked = { questions: [{ id: 'q0', text: 'Which?' }] };
  answer(JSON.stringify(chatReply({ calls: [callTo('ask_user', JSON.stringify(asked))] })));
  const asking = await host.runs.startAndWait({ agent: 'sdk', prompt: 'Go.' });
  host.known = [done, waiting, asking];
}

/** One request, right or wrong. */
function drawRequest(host, chance) {
  const run = chance.pick(host.known);
  const id = chance.is(0.8) ? run.id : chance.is(0.5) ? chance.text(300) : 'a'.repeat(90 + chance.below(60));
  const interaction = chance.is(0.8) ? (run.interactions[0]?.id ?? 'x') : chance.text(200);
  const place = (path) => path.replace('X', encode(interaction));
  const paths = [
    '/agents/runs',
    '/agents/interactions',
    '/agents/definitions',
    `/agents/sessions/${encode(id)}/messages`,
  ];
  const isRead = chance.is(0.4);
  const path = isRead
    ? chance.is(0.4)
      ? chance.pick(paths)
      : `/agents/runs/${encode(id)}${place(chance.pick(RUN_ROUTES))}`
    : chance.is(0.4)
      ? '/agents/runs'
      : `/agents/runs/${encode(id)}/${place(chance.pick(VERBS))}`;
  const method = chance.is(0.95)
    ? isRead
      ? 'GET'
      : 'POST'
    : chance.pick(['PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS']);
  const body = isRead
    ? undefined
    : chance.is(0.1)
      ? chance.jsonText(chance.is(0.2) ? chance.bulk() : chance.json())
      : chance.jsonText(chance.mutated(chance.pick(BODIES)));
  const headers = {
    ...(body !== undefined && {
      'content-type': chance.is(0.93)
        ? 'application/json'
        : chance.pick([
            'text/plain',
            'application/x-www-form-urlencoded',
            'multipart/form-data',
            'application/json; charset=latin1',
            '',
          ]),
    }),
    ...(chance.is(0.2) && {
      accept: chance.pick(['*/*', 'application/json', 'text/html', 'text/event-stream', 'a/b;q=x', '']),
    }),
    ...(chance.is(0.05) && { 'last-event-id': chance.pick(['1', '-1', '1e9', 'x', '9007199254740993']) }),
  };
  given.size += body?.length ?? 0;
  return { method, path: `${path}${query(chance)}`, headers, body };
}

async function http(host, chance) {
  prepare();
  const { method, path, headers, body } = await turns.uncounted(() => drawRequest(host, chance));
  const { status, text } = await send(host.port, method, path, headers, body);
  assert.ok(status < 500, `${method} ${path.slice(0, 200)} answered ${status}: ${text.slice(0, 300)}`);
  if (status >= 400 && method !== 'HEAD') {
    const problem = JSON.parse(text);
    assert.equal(problem.statusCode ?? problem.status, status, text.slice(0, 300));
    assert.doesNotMatch(text, /\bat .*\.(?:js|ts):\d+/, 'an answer shows a stack');
  }
}

const encode = (text) => encodeURIComponent(text.toWellFormed?.() ?? text.replace(/[\ud800-\udfff]/g, '?')) || 'x';

/** A cursor of ours, changed. Cut, because a server answers too long an address without a body. */
function cursor(chance) {
  const drawn = chance.mutated(
    chance.pick([
      ['runs', 1, 'a'],
      ['interactions', 1, 'a', 'r1.m1.t0', 'b'],
    ]),
  );
  return Buffer.from(stringify(drawn)).toString('base64url').slice(0, 1_200);
}

function queryValue(chance, name) {
  if (name === 'wait') return chance.pick(['0', '-1', '61', 'x']);
  if (name === 'after' && chance.is(0.7)) return cursor(chance);
  if (name.startsWith('created') && chance.is(0.5))
    return chance.pick(['2026-12-01', '2026-12-01T00:00:00Z', '2026-13-01', '0000-00-00', '99999']);
  return chance.is(0.3) ? String(chance.below(600)) : chance.text(400);
}

function query(chance) {
  if (chance.is(0.5)) return '';
  const names = [
    'after',
    'limit',
    'status',
    'phase',
    'sessionId',
    'agent',
    'wait',
    'projection',
    'metadata.a',
    'approverRole',
    'runId',
    'actor',
    'createdSince',
    'createdBefore',
    'x',
    '__proto__',
    'metadata.__proto__',
    'limit[]',
    'a[b]',
  ];
  const count = chance.is(0.02) ? 60 : 1 + chance.below(3);
  const one = (index) => {
    const name = chance.pick(names);
    const value = queryValue(chance, name);
    return `${count === 60 ? `metadata.k${index}` : encodeURIComponent(name)}=${encode(value)}`;
  };
  return `?${Array.from({ length: count }, (_, index) => one(index)).join('&')}`;
}

function send(port, method, path, headers, body) {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: connections }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece) => (text += piece));
      response.on('end', () => resolve({ status: response.statusCode, text }));
      // A stream of a run that waits does not end.
      if (String(response.headers['content-type']).startsWith('text/event-stream'))
        response.once('data', () => {
          resolve({ status: response.statusCode, text });
          response.destroy();
        });
      response.on('error', reject);
    });
    sent.on('error', (error) => {
      // The server may close an idle connection just when it is used again.
      if (sent.reusedSocket) return resolve(send(port, method, path, headers, body));
      reject(new Error(`${method} ${path.slice(0, 200)}: ${error.message}`));
    });
    // A body of a HEAD has no length on the wire and would be read as the next request.
    sent.end(method === 'HEAD' ? undefined : body);
  });
}

export const kinds = { replies, schemas, arguments: args, http };
