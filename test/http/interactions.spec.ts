import { setTimeout as delay } from 'node:timers/promises';
import { type ArgumentMetadata, type INestApplication, type PipeTransform, ValidationPipe } from '@nestjs/common';
import { ADAPTERS, type HttpHost, startHttpHost } from './http-host.js';

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const JSON_EVENTS = { accept: 'application/json' };
const FINANCE = { 'x-user': 'fiona', 'x-roles': 'support,finance' };

/** Global pipes of hosts, from eager to outrageous. */
class YesPipe implements PipeTransform {
  transform(value: unknown, { type }: ArgumentMetadata) {
    return type === 'body' ? { decision: 'approve' } : value;
  }
}
class LooseTextPipe implements PipeTransform {
  transform(value: unknown): unknown {
    if (typeof value === 'string') return value.replaceAll('\0', '').trim().toLowerCase();
    if (Array.isArray(value)) return value.length === 1 ? this.transform(value[0]) : value;
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, this.transform(inner)]));
  }
}
const PIPES: Record<string, (app: INestApplication) => unknown> = {
  'no pipe': () => undefined,
  'a converting pipe': (app) =>
    app.useGlobalPipes(
      new ValidationPipe({
        transform: true,
        whitelist: true,
        forbidNonWhitelisted: true,
        forbidUnknownValues: true,
        transformOptions: { enableImplicitConversion: true },
      }),
    ),
  'a pipe that forgives blanks, case and lists': (app) => app.useGlobalPipes(new LooseTextPipe()),
  'a pipe that approves everything': (app) => app.useGlobalPipes(new YesPipe()),
};

/** What other products took, or might take, for a decision. As JSON text, because some of it is no object. */
const NO_DECISIONS = [
  '{"approved":"false"}',
  '{"approved":"no"}',
  '{"approved":"true "}',
  '{"approved":0}',
  '{"approved":1}',
  '{"approved":true}',
  '{"approved":null}',
  '{}',
  '{"approved":[]}',
  '{"approved":[false]}',
  '{"approved":{"x":1}}',
  '{"decision":"APPROVE"}',
  '{"decision":" approve"}',
  '{"decision":["approve"]}',
  '{"decision":"approve\\u0000"}',
  '{"decision":true}',
  '{"decision":null}',
  '{"decision":"reject"}',
  '{"decision":"approve","approved":false}',
  '{"decision":"approve","by":"root"}',
  '{"decision":"approve","action":"accept"}',
  '{"action":"accept","answers":{}}',
  '{"decision":"deny","arguments":{"cents":1}}',
  '{"decision":"approve","arguments":[]}',
  '{"decision":"approve","note":7}',
  '[]',
  '[{"decision":"approve"}]',
  '"approve"',
  'null',
  'true',
  '{"decision":"approve"',
];

/** Starts a run of the clerk and waits until it is at rest. */
async function atRest(host: HttpHost, prompt: string, more: object = {}): Promise<Record<string, any>> {
  const { body } = await host.post('/agents/runs?wait=30', { agent: 'clerk', prompt, ...more }).expect(200);
  return body;
}

async function reaches(host: HttpHost, id: string, status: string): Promise<Record<string, any>> {
  const run = await host.runs.result(id, { timeout: '10s' });
  expect(run.status).toBe(status);
  return (await host.get(`/agents/runs/${id}`)).body;
}

const askPath = (run: Record<string, any>, index = 0) =>
  `/agents/runs/${run.id}/interactions/${run.interactions[index].id}`;

describe.each(ADAPTERS)('PPL-3: decisions on %s', (adapter) => {
  it.each(Object.entries(PIPES))('nothing but the literal words decides, with %s', async (_name, configure) => {
    const host = await startHttpHost({ adapter, configure });
    // Not through the routes: the last pipe spares no body.
    const { id } = await host.runs.startAndWait({ agent: 'clerk', prompt: 'call:pay {"cents":5}|say:done' });
    const { body: run } = await host.get(`/agents/runs/${id}`);
    const path = askPath(run);
    for (const text of NO_DECISIONS) {
      const { status, body } = await host.post(path, text);
      expect([text, status, body.code]).toEqual([text, 400, 'INVALID_REQUEST']);
    }
    await host.post(path).expect(400);
    for (const form of ['decision=approve', 'approved=false']) {
      await host.post(path, form, { 'content-type': 'application/x-www-form-urlencoded' }).expect(415);
      await host.post(path, form, { 'content-type': 'text/plain' }).expect(415);
    }
    const { body: after } = await host.get(`/agents/runs/${id}`);
    expect(after).toEqual(run);
    expect(after.interactions[0].status).toBe('pending');
    const { body: denied } = await host.post(path, '{"decision":"deny"}').expect(200);
    expect(denied).toMatchObject({ status: 'denied', decision: { decision: 'deny', by: 'alice' } });
    await host.close();
  });
});

describe.each(ADAPTERS)('Numbers on %s', (adapter) => {
  const ROUNDED = ['76561198016705749', '-9007199254740993', '9007199254740992', '1e400', '1e21'];
  let host: HttpHost;
  beforeAll(async () => {
    host = await startHttpHost({ adapter });
  });
  afterAll(() => host.close());

  it('PPL-2: that the parser of the host has rounded are refused wherever a body holds JSON', async () => {
    const asked = await atRest(host, 'call:pay {"cents":5}|say:done');
    const operations = `/agents/runs/${asked.id}/operations/resolve`;
    for (const number of ROUNDED) {
      const bodies: [string, string][] = [
        [askPath(asked), `{"decision":"approve","arguments":{"cents":5,"memo":{"account":[${number}]}}}`],
        [askPath(asked), `{"action":"accept","answers":{"account":${number}}}`],
        [operations, `{"key":"r1.m1.t0","output":{"account":${number}}}`],
        ['/agents/runs', `{"agent":"clerk","prompt":"say:x","metadata":{"account":${number}}}`],
        [
          '/agents/runs',
          `{"agent":"clerk","messages":[{"role":"user","content":[{"type":"text","text":"say:x","providerOptions":{"p":{"n":${number}}}}]}]}`,
        ],
        [
          '/agents/runs',
          `{"agent":"clerk","messages":[{"role":"assistant","content":[{"type":"tool-call","callId":"a","name":"pay","arguments":{"n":${number}}}]},{"role":"tool","content":[{"type":"tool-result","callId":"a","name":"pay","outcome":"success","output":1}]},{"role":"user","content":"say:x"}]}`,
        ],
      ];
      for (const [path, body] of bodies) {
        const answer = await host.post(path, body);
        expect([body, answer.status, answer.body]).toEqual([
          body,
          400,
          expect.objectContaining({ code: 'INVALID_REQUEST', message: expect.stringContaining('2^53') }),
        ]);
      }
    }
    expect((await host.get(`/agents/runs/${asked.id}`)).body.interactions[0].status).toBe('pending');
    const exact = '{"decision":"approve","arguments":{"cents":9007199254740991}}';
    expect((await host.post(askPath(asked), exact)).body.decision.arguments).toMatchObject({ cents: 9007199254740991 });
  });

  it('SUB-8: and JSON of many levels is refused, not an error of the server', async () => {
    const deep = `${'{"a":'.repeat(9_000)}1${'}'.repeat(9_000)}`;
    const content = `[{"type":"text","text":"say:x","providerOptions":${deep}}]`;
    const body = `{"agent":"clerk","messages":[{"role":"user","content":${content}}]}`;
    const answer = await host.post('/agents/runs', body);
    expect([answer.status, answer.body.code]).toEqual([400, 'INVALID_REQUEST']);
  });
});

describe.each(ADAPTERS)('People on %s', (adapter) => {
  let host: HttpHost;
  beforeAll(async () => {
    host = await startHttpHost({ adapter, configure: PIPES['a converting pipe'] });
  });
  afterAll(() => host.close());

  it('PPL-2, PPL-3: approve a call; who did it and why is kept; the same again is answered with the same, another answer conflicts', async () => {
    const run = await atRest(host, 'call:pay {"cents":5}|say:done', { sessionId: 'approved' });
    expect(run).toMatchObject({ status: 'waiting', waitingFor: ['approval'] });
    expect(run.interactions).toEqual([
      expect.objectContaining({
        runId: run.id,
        sessionId: 'approved',
        kind: 'approval',
        status: 'pending',
        tool: 'pay',
        arguments: { cents: 5, currency: 'EUR' },
        reason: 'money leaves',
        agent: 'clerk',
        version: '1',
        decision: null,
        createdAt: expect.stringMatching(ISO),
        expiresAt: expect.stringMatching(ISO),
      }),
    ]);
    const decision = { decision: 'approve', note: 'fine' };
    const { body } = await host.post(askPath(run), decision).expect(200);
    expect(body).toMatchObject({
      id: run.interactions[0].id,
      decision: { decision: 'approve', by: 'alice', note: 'fine' },
      decidedAt: expect.stringMatching(ISO),
    });
    expect(body.status).toBe('approved');
    await reaches(host, run.id, 'completed');
    const { body: again } = await host.post(askPath(run), decision).expect(200);
    expect(again.decision).toEqual(body.decision);
    for (const [other, user] of [
      [{ decision: 'deny' }, 'alice'],
      [{ decision: 'approve' }, 'alice'],
      [decision, 'bob'],
    ] as const) {
      const { body: problem } = await host.post(askPath(run), other, { 'x-user': user }).expect(409);
      expect(problem.code).toBe('ALREADY_DECIDED');
    }
  });

  it('PPL-5: deny a call; the model is told who and why', async () => {
    const run = await atRest(host, 'call:pay {"cents":5}|say:done');
    await host.post(askPath(run), { decision: 'deny', note: 'too much' }, { 'x-user': 'bob' }).expect(200);
    await reaches(host, run.id, 'completed');
    const { text } = await host.get(`/agents/runs/${run.id}/messages`);
    expect(text).toContain('too much');
    expect(text).toContain('bob');
    expect(text).not.toContain('paid');
  });

  it('PPL-3: replace the arguments; what does not fit is 422 and leaves the ask open', async () => {
    const run = await atRest(host, 'call:pay {"cents":5}|say:done');
    const { body } = await host.post(askPath(run), { decision: 'approve', arguments: { cents: 'many' } }).expect(422);
    expect(body).toMatchObject({ code: 'INVALID_ARGUMENTS', details: { problems: ['cents must be a number'] } });
    await host.post(askPath(run), { decision: 'approve', arguments: { cents: 3 } }).expect(200);
    await reaches(host, run.id, 'completed');
    expect((await host.get(`/agents/runs/${run.id}/messages`)).text).toContain('"paid":3');
  });

  it('PPL-8: answer questions, one per id; what does not fit is 422 and leaves them open', async () => {
    const run = await atRest(host, 'call:inquire {}|say:done');
    expect(run).toMatchObject({ waitingFor: ['question'], interactions: [{ kind: 'question', arguments: null }] });
    expect(run.interactions[0].questions[0]).toEqual({ id: 'size', text: 'Which size?', choices: ['S', 'L'] });
    for (const answers of [{}, { size: 'M', why: 'x' }, { size: 'S' }, { size: 'S', why: 'x', more: 'y' }]) {
      const { status, body } = await host.post(askPath(run), { action: 'accept', answers });
      expect([answers, status, body.code]).toEqual([answers, 422, 'INVALID_ANSWER']);
    }
    for (const body of [
      { action: 'ACCEPT', answers: {} },
      { action: 'accept' },
      { action: 'decline', answers: {} },
      { decision: 'approve' },
      { decision: 'deny' },
    ]) {
      expect([body, (await host.post(askPath(run), body)).status]).toEqual([body, 400]);
    }
    const answers = { size: 'S', why: 'it fits' };
    const { body } = await host.post(askPath(run), { action: 'accept', answers, note: 'measured' }).expect(200);
    expect(body.decision).toEqual({ action: 'accept', by: 'alice', note: 'measured', answers });
    await reaches(host, run.id, 'completed');
    expect((await host.get(`/agents/runs/${run.id}/messages`)).text).toContain('it fits');
  });

  it('PPL-8: decline a question', async () => {
    const run = await atRest(host, 'call:inquire {}|say:done');
    const { body } = await host.post(askPath(run), { action: 'decline', note: 'none of your business' }).expect(200);
    expect(body).toMatchObject({ status: 'declined', decision: { action: 'decline', by: 'alice' } });
    await reaches(host, run.id, 'completed');
    expect((await host.get(`/agents/runs/${run.id}/messages`)).text).toContain('none of your business');
  });

  it('PPL-3: are too late for an ask that expired: 410', async () => {
    const run = await atRest(host, 'call:hasty {}|say:done');
    await delay(5);
    const { body } = await host.post(askPath(run), { decision: 'approve' }).expect(410);
    expect(body.code).toBe('INTERACTION_EXPIRED');
  });

  it('find no ask of another run, and none that does not exist: 404', async () => {
    const run = await atRest(host, 'call:pay {"cents":5}');
    const other = await atRest(host, 'call:pay {"cents":5}');
    const ask = run.interactions[0].id;
    const missing = await host.post(`/agents/runs/${other.id}/interactions/${ask}`, { decision: 'approve' });
    expect([missing.status, missing.body.code]).toEqual([404, 'INTERACTION_NOT_FOUND']);
    const noRun = await host.post(`/agents/runs/none/interactions/${ask}`, { decision: 'approve' });
    expect([noRun.status, noRun.body.code]).toEqual([404, 'RUN_NOT_FOUND']);
    await host.post(`/agents/runs/${run.id}/interactions/a%20b`, { decision: 'approve' }).expect(400);
    await host.post(`/agents/runs/a%20b/interactions/${ask}`, { decision: 'approve' }).expect(400);
    expect((await host.get(`/agents/runs/${run.id}`)).body.interactions).toHaveLength(1);
  });

  it('PPL-2: with the role that an ask is for decide it, nobody else', async () => {
    const run = await atRest(host, 'call:wire {}|say:done');
    expect(run.interactions[0]).toMatchObject({ approverRole: 'finance', risk: 'high' });
    for (const decision of ['approve', 'deny']) {
      for (const roles of [undefined, '', 'support', 'Finance', 'finance ', 'support,financе']) {
        const { status, body } = await host.post(
          askPath(run),
          { decision },
          { 'x-user': 'alice', ...(roles !== undefined && { 'x-roles': encodeURI(roles) }) },
        );
        expect([roles, status, body.code]).toEqual([roles, 403, 'FORBIDDEN']);
      }
    }
    expect((await host.get(`/agents/runs/${run.id}`)).body.interactions[0].status).toBe('pending');
    await host.post(askPath(run), { decision: 'approve' }, FINANCE).expect(200);
    await reaches(host, run.id, 'completed');
    await host.post(askPath(run), { decision: 'approve' }).expect(403);
  });

  it('PPL-6: see a resume refused while asks are open: 409 naming them', async () => {
    const run = await atRest(host, 'call:pay {"cents":5}|say:done');
    const { body } = await host.post(`/agents/runs/${run.id}/resume`, {}).expect(409);
    expect(body).toMatchObject({ code: 'OPEN_INTERACTIONS', details: { interactions: [run.interactions[0].id] } });
  });

  it('PPL-9: list asks by status, session, agent, run and role, a page at a time', async () => {
    const prompt = 'call:pay {"cents":5}|call:wire {}';
    const first = await atRest(host, prompt, { sessionId: 'listed-1' });
    const second = await atRest(host, prompt, { sessionId: 'listed-2' });
    await host.post(askPath(first), { decision: 'approve' }).expect(200);
    await reaches(host, first.id, 'waiting');
    const list = async (query: string) =>
      (await host.get(`/agents/interactions${query}`).expect(200)).body.interactions as Record<string, any>[];
    const found = await list('?sessionId=listed-1');
    expect(found.map(({ tool, status }) => [tool, status])).toEqual([['wire', 'pending']]);
    expect(await list('?sessionId=listed-2&status=pending&agent=clerk')).toEqual(second.interactions);
    expect((await list(`?runId=${first.id}&status=used`)).map(({ id }) => id)).toEqual([first.interactions[0].id]);
    expect(await list(`?runId=${first.id}&approverRole=finance`)).toHaveLength(1);
    expect(await list(`?runId=${first.id}&approverRole=Finance`)).toEqual([]);
    expect(await list('?agent=nobody')).toEqual([]);

    const ids: string[] = [];
    for (let after = ''; ;) {
      const { body } = await host.get(`/agents/interactions?limit=1${after}`).expect(200);
      expect(body.interactions.length).toBeLessThanOrEqual(1);
      ids.push(...body.interactions.map(({ id }: any) => id));
      if (body.nextCursor === undefined) break;
      after = `&after=${body.nextCursor}`;
    }
    expect(ids).toEqual((await list('?limit=100')).map(({ id }) => id));

    for (const query of [
      '?status=open',
      '?status=',
      '?limit=0',
      '?limit=101',
      '?sort=risk',
      "?runId='--",
      '?agent=a&agent=b',
    ]) {
      const { status, body } = await host.get(`/agents/interactions${query}`);
      expect([query, status, body.code]).toEqual([query, 400, 'INVALID_REQUEST']);
    }
    expect((await host.get('/agents/interactions?after=garbage').expect(400)).body.code).toBe('INVALID_CURSOR');
  });

  it('STR-1: steer an open run: the message is delivered once, in the name of the actor', async () => {
    const run = await atRest(host, 'call:pay {"cents":5}|say:done');
    const path = `/agents/runs/${run.id}/steer`;
    const message = { message: '  also the Q3 numbers 😀\n', requestId: 'm1' };
    for (let i = 0; i < 2; i++) {
      expect((await host.post(path, message).expect(202)).body).toEqual({ messageId: 'm1', status: 'queued' });
    }
    const { body: own } = await host.post(path, { message: 'and hurry' }).expect(202);
    expect(own.messageId).toEqual(expect.any(String));
    expect((await host.post(path, { ...message, message: 'else' }).expect(409)).body.code).toBe('REQUEST_CONFLICT');
    expect((await host.post(path, message, { 'x-user': 'bob' }).expect(409)).body.code).toBe('REQUEST_CONFLICT');
    for (const bad of [{}, { message: ' ' }, { message: 7 }, { message: ['x'] }, { message: 'x', sender: 'root' }]) {
      expect([bad, (await host.post(path, bad)).status]).toEqual([bad, 400]);
    }
    await host.post(askPath(run), { decision: 'approve' }).expect(200);
    await reaches(host, run.id, 'completed');
    const { body } = await host.get(`/agents/runs/${run.id}/messages`);
    const steered = body.messages.filter(({ kind }: any) => kind === 'steering');
    expect(steered.map(({ sender, content }: any) => [sender, content[0].text])).toEqual([
      ['alice', message.message],
      ['alice', 'and hurry'],
    ]);
    expect((await host.post(path, { message: 'too late' }).expect(409)).body.code).toBe('ILLEGAL_TRANSITION');
  });

  it('STR-2: are told 422 when a message is refused, and it is never delivered', async () => {
    const run = await atRest(host, 'call:pay {"cents":5}|say:done');
    const { body } = await host.post(`/agents/runs/${run.id}/steer`, { message: 'make mischief' }).expect(422);
    expect(body.code).toBe('INPUT_REFUSED');
    await host.post(askPath(run), { decision: 'approve' }).expect(200);
    await reaches(host, run.id, 'completed');
    expect((await host.get(`/agents/runs/${run.id}/messages`)).text).not.toContain('mischief');
  });

  it('RUN-5: restart a settled run on the same record, with a new prompt or the old one', async () => {
    const run = await atRest(host, 'say:first');
    const path = `/agents/runs/${run.id}/restart`;
    await host.post(path, { prompt: ' ' }).expect(400);
    await host.post(path, { prompt: 'say:second', reason: 'once more' }).expect(202);
    const second = await reaches(host, run.id, 'completed');
    expect(second).toMatchObject({
      id: run.id,
      output: 'second',
      restarts: 1,
      previousGenerations: [{ status: 'completed', output: 'first', finishedAt: expect.stringMatching(ISO) }],
    });
    await host.post(path).expect(202);
    expect(await reaches(host, run.id, 'completed')).toMatchObject({ output: 'second', restarts: 2 });
    const { body: log } = await host.get(`/agents/runs/${run.id}/events`, JSON_EVENTS);
    const restarts = log.events.filter(({ type }: any) => type === 'run.restarted');
    expect(restarts.map(({ data }: any) => data.by)).toEqual(['alice', 'alice']);
    const open = await atRest(host, 'call:pay {"cents":5}');
    expect((await host.post(`/agents/runs/${open.id}/restart`, {}).expect(409)).body.code).toBe('ILLEGAL_TRANSITION');
  });

  it('BUD-2: see what a run has consumed, and grant what it needs', async () => {
    const run = await atRest(host, 'call:echo {}|say:done', { budget: { maxTotalTokens: 3 } });
    expect(run).toMatchObject({ status: 'waiting', waitingFor: ['budget'] });
    const path = `/agents/runs/${run.id}/budget`;
    const { body: before } = await host.get(path).expect(200);
    expect(before).toEqual({ maxTotalTokens: 3, consumed: 3, remaining: 0, grants: [] });
    for (const bad of [
      {},
      { decision: 'GRANT' },
      { decision: ['grant'] },
      { decision: true },
      { amount: 5 },
      { decision: 'grant', amount: '5' },
      { decision: 'grant', amount: 0 },
      { decision: 'grant', amount: 1.5 },
      { decision: 'deny', amount: 5 },
      { decision: 'grant', by: 'root' },
    ]) {
      expect([bad, (await host.post(path, bad)).status]).toEqual([bad, 400]);
    }
    expect((await host.get(path)).body).toEqual(before);
    const { body } = await host.post(path, { decision: 'grant', amount: 10, note: 'go on' }, FINANCE).expect(202);
    expect(body).toMatchObject({ id: run.id, budget: { maxTotalTokens: 13 } });
    await reaches(host, run.id, 'completed');
    expect((await host.get(path)).body).toEqual({
      maxTotalTokens: 13,
      consumed: 6,
      remaining: 7,
      grants: [{ amount: 10, by: 'fiona', note: 'go on', at: expect.stringMatching(ISO) }],
    });
    expect((await host.post(path, { decision: 'grant' }).expect(409)).body.code).toBe('ILLEGAL_TRANSITION');
    const unlimited = await atRest(host, 'say:x');
    expect((await host.get(`/agents/runs/${unlimited.id}/budget`)).body).toEqual({ consumed: 3, grants: [] });
  });

  it('BUD-2: grant the shortfall when no amount is said, deny it, or replace the limit with a resume', async () => {
    const start = () => atRest(host, 'call:echo {}|say:done', { budget: { maxTotalTokens: 3 } });
    const granted = await start();
    await host.post(`/agents/runs/${granted.id}/budget`, { decision: 'grant' }).expect(202);
    await reaches(host, granted.id, 'completed');

    const denied = await start();
    await host.post(`/agents/runs/${denied.id}/budget`, { decision: 'deny', note: 'enough' }).expect(202);
    expect(await reaches(host, denied.id, 'failed')).toMatchObject({ error: { code: 'BUDGET_DENIED' } });

    const resumed = await start();
    await host.post(`/agents/runs/${resumed.id}/resume`, { budget: { maxTotalTokens: 3 } }).expect(202);
    expect((await host.get(`/agents/runs/${resumed.id}`)).body.status).toBe('waiting');
    await host.post(`/agents/runs/${resumed.id}/resume`, { budget: { maxTotalTokens: 20 } }).expect(202);
    expect(await reaches(host, resumed.id, 'completed')).toMatchObject({ budget: { maxTotalTokens: 20 } });
  });

  it('are told 404 for a run that is not there, and 415 for what is no JSON', async () => {
    const bodies: [string, object][] = [
      ['interrupt', {}],
      ['restart', {}],
      ['steer', { message: 'x' }],
      ['budget', { decision: 'grant' }],
    ];
    for (const [path, body] of bodies) {
      const answer = await host.post(`/agents/runs/none/${path}`, body);
      expect([path, answer.status, answer.body.code]).toEqual([path, 404, 'RUN_NOT_FOUND']);
      await host.post(`/agents/runs/a%20b/${path}`, body).expect(400);
      const form = { 'content-type': 'application/x-www-form-urlencoded' };
      expect([path, (await host.post(`/agents/runs/none/${path}`, 'message=x&decision=grant', form)).status]).toEqual([
        path,
        415,
      ]);
    }
    await host.get('/agents/runs/none/budget').expect(404);
  });
});

describe.each(ADAPTERS)('RUN-3 on %s', (adapter) => {
  it('a run is interrupted, and goes on when it is resumed; what cannot be interrupted is 409', async () => {
    const host = await startHttpHost({ adapter, worker: false });
    const { id } = (await host.post('/agents/runs', { agent: 'clerk', prompt: 'say:x' })).body;
    const { body } = await host.post(`/agents/runs/${id}/interrupt`, { reason: 'wait' }).expect(202);
    expect(body).toMatchObject({ id, status: 'interrupted', phase: 'suspended' });
    await host.post(`/agents/runs/${id}/interrupt`).expect(202);
    const { body: log } = await host.get(`/agents/runs/${id}/events`, JSON_EVENTS);
    const told = log.events.filter(({ type }: any) => type === 'run.interrupted');
    expect(told.map(({ data }: any) => [data.by, data.reason])).toEqual([['alice', 'wait']]);
    await host.post(`/agents/runs/${id}/cancel`).expect(202);
    expect((await host.post(`/agents/runs/${id}/interrupt`, {}).expect(409)).body.code).toBe('ILLEGAL_TRANSITION');
    await host.close();
  });
});
