import type { Server, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { ConsoleLogger, VERSION_NEUTRAL, ValidationPipe, VersioningType } from '@nestjs/common';
import { ADAPTERS, type HttpHost, startHttpHost } from './http-host.js';

/** A host whose global pipe converts and refuses whatever it can. */
const zealousPipe = () =>
  new ValidationPipe({
    transform: true,
    whitelist: true,
    forbidNonWhitelisted: true,
    forbidUnknownValues: true,
    transformOptions: { enableImplicitConversion: true },
  });

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const JSON_EVENTS = { accept: 'application/json' };

class WarningLog extends ConsoleLogger {
  readonly warnings: unknown[] = [];
  constructor() {
    super({ logLevels: ['warn'] });
  }
  override warn(...line: unknown[]): void {
    this.warnings.push(line);
  }
}

async function settled(host: HttpHost, id: string, status: string): Promise<Record<string, any>> {
  for (let i = 0; i < 500; i++) {
    const { body } = await host.get(`/agents/runs/${id}`);
    if (body.status === status) return body;
    await delay(10);
  }
  throw new Error(`the run is not ${status}`);
}

describe.each(ADAPTERS)('The routes on %s', (adapter) => {
  const log = new WarningLog();
  let host: HttpHost;
  beforeAll(async () => {
    host = await startHttpHost({
      adapter,
      routes: { features: { takeover: true } },
      configure: (app) => {
        app.useLogger(log);
        app.useGlobalPipes(zealousPipe());
      },
    });
  });
  afterAll(() => host.close());

  it("are declared in a way that the host's global ValidationPipe has nothing to warn about", () => {
    expect(log.warnings).toEqual([]);
  });

  const start = async (prompt: string, more: object = {}) =>
    (await host.post('/agents/runs', { agent: 'clerk', prompt, ...more }).expect(202)).body as Record<string, any>;

  it('start a run: 202, a Location that answers, times in ISO 8601', async () => {
    const { body, headers } = await host.post('/agents/runs', { agent: 'clerk', prompt: 'say:hi' }).expect(202);
    expect(headers.location).toBe(`/agents/runs/${body.id}`);
    expect(body).toMatchObject({
      agent: 'clerk',
      version: '1',
      interactions: [],
      restarts: 0,
      previousGenerations: [],
    });
    expect(body.createdAt).toMatch(ISO);
    const run = await settled(host, body.id, 'completed');
    expect(run).toMatchObject({ id: body.id, output: 'hi', phase: 'settled', turn: 1, usage: { totalTokens: 3 } });
    expect(run.finishedAt).toMatch(ISO);
  });

  it('SUB-2: an equal request under the same id is answered with the same run: 200; another one conflicts: 409', async () => {
    const request = { agent: 'clerk', prompt: 'say:one', requestId: 'twice', sessionId: 'dedup' };
    const first = await host.post('/agents/runs', request).expect(202);
    const second = await host.post('/agents/runs', request).expect(200);
    expect(second.body).toMatchObject({ id: first.body.id, deduplicated: true });
    expect(second.headers.location).toBeUndefined();
    const other = await host.post('/agents/runs', { ...request, prompt: 'say:two' }).expect(409);
    expect(other.body).toMatchObject({ statusCode: 409, code: 'REQUEST_CONFLICT' });
  });

  it('JRN-9: show a result as the model and the host see it, whatever it was made of (B109)', async () => {
    const { body } = await host.post('/agents/runs?wait=30', { agent: 'clerk', prompt: 'call:odd {}|say:done' });
    expect(body).toMatchObject({ status: 'completed' });
    const completed = (events: readonly { type: string; data: Record<string, unknown> }[]): unknown =>
      events.find(({ type }) => type === 'tool.completed')?.data['output'];
    const { events } = await host.runs.events(body.id);
    const shown = completed(events) as Record<string, unknown>;
    expect(Object.keys(shown)).toEqual(expect.arrayContaining([...'abcdefikl']));
    expect(shown['k']).toMatchObject({ message: 'x' });
    const page = await host.get(`/agents/runs/${body.id}/events`, { accept: 'application/json' }).expect(200);
    expect(completed(page.body.events)).toEqual(shown);
    const { body: said } = await host.get(`/agents/runs/${body.id}/messages`).expect(200);
    expect(said.messages.find(({ role }: { role: string }) => role === 'tool').content[0].output).toEqual(shown);
    const [told] = (await host.runs.messages(body.id)).flatMap((one) => (one.role === 'tool' ? one.content : []));
    expect(told?.output).toEqual(shown);
  });

  it('?wait= answers 200 once the run is at rest, and 202 when the time is over first', async () => {
    const done = await host.post('/agents/runs?wait=30', { agent: 'clerk', prompt: 'say:hi' }).expect(200);
    expect(done.body).toMatchObject({ status: 'completed', output: 'hi' });
    const suspended = await host.post('/agents/runs?wait=30', { agent: 'clerk', prompt: 'call:stuck {}' }).expect(200);
    expect(suspended.body).toMatchObject({ status: 'needs_attention', phase: 'suspended' });
    const busy = await host.post('/agents/runs?wait=0', { agent: 'clerk', prompt: 'hang' }).expect(202);
    expect(busy.body.phase).toBe('active');
    expect(busy.headers.location).toBe(`/agents/runs/${busy.body.id}`);
    await host.post('/agents/runs?wait=61', { agent: 'clerk', prompt: 'say:hi' }).expect(400);
    await host.post('/agents/runs?wait=', { agent: 'clerk', prompt: 'say:hi' }).expect(400);
    await host.post(`/agents/runs/${busy.body.id}/cancel`).expect(202);
  });

  // B140
  it('?wait= cancels nothing when the client goes away', async () => {
    const server = host.app.getHttpServer() as Server;
    const gone = new Promise((resolve) =>
      server.once('request', (_request, response: ServerResponse) => response.once('close', resolve)),
    );
    const asked = host.post('/agents/runs?wait=30', { agent: 'clerk', prompt: 'hang', sessionId: 'left' });
    asked.catch(() => undefined);
    let started: { id: string }[] = [];
    while (started.length === 0) started = (await host.get('/agents/runs?sessionId=left')).body.runs;
    asked.abort();
    await gone;
    expect((await host.get(`/agents/runs/${started[0]!.id}`)).body.status).toBe('running');
    await host.post(`/agents/runs/${started[0]!.id}/cancel`).expect(202);
  });

  it('refuse to start what they do not know, before anything is written', async () => {
    const unknown = await host.post('/agents/runs', { agent: 'nobody', prompt: 'x' }).expect(404);
    expect(unknown.body.code).toBe('AGENT_NOT_FOUND');
    const bad = await host.post('/agents/runs', { agent: 'clerk', prompt: '  ', surprise: 1 }).expect(400);
    expect(bad.body).toMatchObject({ statusCode: 400, code: 'INVALID_REQUEST' });
    expect(bad.body.details.fields.map(({ field }: { field: string }) => field)).toEqual(['prompt', 'surprise']);
    const page = await host
      .post('/agents/runs', { agent: 'clerk', prompt: 'say:x', sessionId: 'shown' }, { accept: 'text/html' })
      .expect(406);
    expect(page.body.code).toBe('NOT_ACCEPTABLE');
    expect((await host.get('/agents/runs?sessionId=shown').expect(200)).body).toEqual({ runs: [] });
  });

  it('list runs by session, agent, status, phase and metadata, a page at a time', async () => {
    const ids: string[] = [];
    for (const level of [1, 2, 3]) {
      const { body } = await host.post('/agents/runs?wait=30', {
        agent: 'clerk',
        prompt: 'say:listed',
        sessionId: 'pages',
        metadata: { 'a.level': level, vip: true },
      });
      ids.push(body.id);
    }
    const first = await host.get('/agents/runs?sessionId=pages&agent=clerk&phase=settled&limit=2').expect(200);
    expect(first.body.runs).toHaveLength(2);
    const rest = await host.get(`/agents/runs?sessionId=pages&limit=2&after=${first.body.nextCursor}`).expect(200);
    expect(rest.body).not.toHaveProperty('nextCursor');
    expect([...first.body.runs, ...rest.body.runs].map(({ id }) => id).sort()).toEqual(ids.sort());
    expect(JSON.stringify(first.body)).not.toContain('listed');
    const byMetadata = await host.get('/agents/runs?metadata.a.level=2&metadata.vip=true').expect(200);
    expect(byMetadata.body.runs.map(({ metadata }: any) => metadata)).toEqual([{ 'a.level': 2, vip: true }]);
    expect((await host.get('/agents/runs?sessionId=pages&status=failed')).body.runs).toEqual([]);
    expect((await host.get('/agents/runs?after=garbage').expect(400)).body.code).toBe('INVALID_CURSOR');
  });

  it('tell a run, its snapshot, its messages and its events', async () => {
    const { id } = await start('call:echo {}|say:done', { sessionId: 'told' });
    await settled(host, id, 'completed');
    const { body: snapshot } = await host.get(`/agents/runs/${id}/snapshot`).expect(200);
    expect(snapshot).toMatchObject({ run: { id, status: 'completed' }, cursor: snapshot.run.sequence });
    const tool = snapshot.operations.find(({ kind }: { kind: string }) => kind === 'tool');
    expect(tool).toMatchObject({ name: 'echo', status: 'completed', recovery: 'safe', attempts: 1 });
    expect(tool.startedAt).toMatch(ISO);
    expect(tool.finishedAt).toMatch(ISO);
    expect(tool).not.toHaveProperty('output');
    const { body: transcript } = await host.get(`/agents/runs/${id}/messages`).expect(200);
    expect(transcript.messages.map(({ role }: any) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    expect((await host.get('/agents/sessions/told/messages').expect(200)).body).toEqual(transcript);

    const { body: all } = await host.get(`/agents/runs/${id}/events`, JSON_EVENTS).expect(200);
    expect(all.events.map((event: any) => event.id)).toEqual(all.events.map((_: unknown, i: number) => i + 1));
    expect(all.events.at(-1)).toMatchObject({ type: 'run.completed' });
    expect(all.nextCursor).toBe(all.events.length);
    const { body: page } = await host.get(`/agents/runs/${id}/events?after=2&limit=1`, JSON_EVENTS).expect(200);
    expect(page).toEqual({ events: [all.events[2]], nextCursor: 3 });
    const { body: lean } = await host.get(`/agents/runs/${id}/events?projection=lifecycle`, JSON_EVENTS).expect(200);
    expect(JSON.stringify(lean)).not.toContain('call:echo');
    expect((await host.get(`/agents/runs/${id}/events?after=9999`, JSON_EVENTS).expect(400)).body.code).toBe(
      'INVALID_CURSOR',
    );
    // As curl asks, and as nobody in particular does.
    for (const accept of ['*/*', '', 'text/html, */*;q=0.8']) {
      expect((await host.get(`/agents/runs/${id}/events`, { accept }).expect(200)).body).toEqual(all);
    }
    for (const accept of ['image/png', 'text/html', 'application/json;q=0']) {
      expect((await host.get(`/agents/runs/${id}/events`, { accept }).expect(406)).body.code).toBe('NOT_ACCEPTABLE');
    }
  });

  it('tell which agents there are', async () => {
    const { body } = await host.get('/agents/definitions').expect(200);
    expect(body.agents).toEqual([
      {
        name: 'clerk',
        versions: [
          {
            version: '1',
            hash: expect.any(String),
            tools: expect.arrayContaining([{ name: 'echo', version: '1', recovery: 'safe', approval: 'none' }]),
          },
        ],
      },
    ]);
  });

  it('RUN-2: cancel a run, and say so when it is too late; who did it and why is kept', async () => {
    const { id } = await start('hang');
    const { body } = await host.post(`/agents/runs/${id}/cancel`, { reason: 'not needed' }).expect(202);
    expect(body).toMatchObject({ id, status: 'cancelled' });
    const { body: log } = await host.get(`/agents/runs/${id}/events`, JSON_EVENTS).expect(200);
    expect(log.events.find(({ type }: any) => type === 'run.cancelled').data).toMatchObject({
      by: 'alice',
      reason: 'not needed',
    });
    expect((await host.post(`/agents/runs/${id}/cancel`, {}).expect(202)).body.status).toBe('cancelled');
    for (const verb of ['resume', 'retry']) {
      expect((await host.post(`/agents/runs/${id}/${verb}`, {}).expect(409)).body.code).toBe('ILLEGAL_TRANSITION');
    }
    const { body: done } = await host.post('/agents/runs?wait=30', { agent: 'clerk', prompt: 'say:x' });
    expect((await host.post(`/agents/runs/${done.id}/cancel`).expect(409)).body.code).toBe('ILLEGAL_TRANSITION');
  });

  it('JRN-12: retry a run that used its turns up with a higher limit, which is more to spend', async () => {
    const prompt = `${'call:echo {}|'.repeat(20)}say:done`;
    const { body: run } = await host.post('/agents/runs?wait=30', { agent: 'clerk', prompt }).expect(200);
    expect(run.error.code).toBe('MAX_TURNS_EXCEEDED');
    const path = `/agents/runs/${run.id}/retry`;
    expect((await host.post(path, {}).expect(409)).body).toMatchObject({
      code: 'ILLEGAL_TRANSITION',
      details: { turn: 20 },
    });
    for (const maxTurns of ['21', 0, 20, 20.5, null]) await host.post(path, { maxTurns }).expect(400);
    await host.post(path, { maxTurns: 21, reason: 'nearly there' }).expect(202);
    await settled(host, run.id, 'completed');
  });

  it('JRN-10: settle an operation whose outcome is unknown', async () => {
    const { body: stuck } = await host.post('/agents/runs?wait=30', { agent: 'clerk', prompt: 'call:stuck {}|say:ok' });
    const path = `/agents/runs/${stuck.id}/operations/resolve`;
    expect((await host.post(path, { key: 'nope', output: 1 }).expect(409)).body.code).toBe('OPERATION_CONFLICT');
    await host.post(path, { key: stuck.attention.operationKey }).expect(400);
    await host.post(path, { key: stuck.attention.operationKey, output: { sent: true }, note: 'seen' }).expect(202);
    await settled(host, stuck.id, 'completed');
    const { body: log } = await host.get(`/agents/runs/${stuck.id}/events`, JSON_EVENTS);
    expect(log.events.find(({ type }: any) => type === 'tool.resolved').data).toMatchObject({
      by: 'alice',
      note: 'seen',
    });
  });

  it.each([{ reason: 'it is gone' }, { confirmation: { reason: 'it is gone' } }])(
    'OWN-4: a run is taken from a live owner only with a reason, in the name of the actor: %j',
    async (given) => {
      const { id } = await start('hang');
      await settled(host, id, 'running');
      expect((await host.post(`/agents/runs/${id}/resume`, {})).body.code).toBe('RUN_LEASED');
      await host.post(`/agents/runs/${id}/resume`, { allowRunningTakeover: true }).expect(400);
      await host.post(`/agents/runs/${id}/resume`, { allowRunningTakeover: true, ...given }).expect(202);
      const { body: log } = await host.get(`/agents/runs/${id}/events`, JSON_EVENTS);
      expect(log.events.find(({ type }: any) => type === 'run.takeover_requested').data).toMatchObject({
        by: 'alice',
        reason: 'it is gone',
      });
      await host.post(`/agents/runs/${id}/cancel`).expect(202);
    },
  );

  it('say 404 for a run that is not there, and 400 for what is no id', async () => {
    for (const path of ['', '/snapshot', '/messages', '/events']) {
      const { status, body } = await host.get(`/agents/runs/none${path}`, JSON_EVENTS);
      expect([path, status, body.code]).toEqual([path, 404, 'RUN_NOT_FOUND']);
      expect((await host.get(`/agents/runs/a%20b${path}`, JSON_EVENTS)).status).toBe(400);
    }
    for (const path of ['resume', 'retry', 'cancel', 'operations/resolve']) {
      const { status, body } = await host.post(`/agents/runs/none/${path}`, {
        ...(path.includes('/') && { key: 'k', output: 1 }),
      });
      expect([path, status, body.code]).toEqual([path, 404, 'RUN_NOT_FOUND']);
    }
    expect((await host.get('/agents/sessions/a%27--/messages')).status).toBe(400);
  });

  it('name what is wrong with a body, whatever global pipe the host has', async () => {
    const { id } = await start('hang');
    for (const value of ['false', 'true', 0, 1, null, [], [true], { x: 1 }]) {
      const { status, body } = await host.post(`/agents/runs/${id}/resume`, {
        allowRunningTakeover: value,
        reason: 'x',
      });
      expect([value, status, body.code]).toEqual([value, 400, 'INVALID_REQUEST']);
    }
    for (const body of ['[]', '[{"agent":"clerk"}]']) await host.post('/agents/runs', body).expect(400);
    for (const path of [
      '?limit=1e9',
      '?limit=-1',
      '?limit=abc',
      '?sort=__proto__',
      '?limit=5&limit=6',
      "?metadata.a')%20OR%201=1%20--=x",
    ]) {
      const { status, text } = await host.get(`/agents/runs${path}`);
      expect([path, status]).toEqual([path, 400]);
      expect(text).not.toMatch(/sql|syntax|node_modules/i);
    }
    await host.post(`/agents/runs/${id}/cancel`).expect(202);
  });

  it('take bodies as JSON only', async () => {
    const form = await host
      .post('/agents/runs', 'agent=clerk&prompt=hi', { 'content-type': 'application/x-www-form-urlencoded' })
      .expect(415);
    expect(form.body).toMatchObject({ statusCode: 415, code: 'UNSUPPORTED_MEDIA_TYPE' });
    await host.post('/agents/runs', '{"agent":"clerk","prompt":"x"}', { 'content-type': 'text/plain' }).expect(415);
  });

  it('B147: answer a body that is no JSON, or too large, in their own shape', async () => {
    const broken = await host.post('/agents/runs', '{"agent":').expect(400);
    expect(broken.body).toMatchObject({ statusCode: 400, code: 'INVALID_REQUEST', details: { fields: [{}] } });
    const large = await host.post('/agents/runs', { agent: 'clerk', prompt: 'x'.repeat(3_000_000) }).expect(413);
    expect(large.body).toMatchObject({ statusCode: 413, code: 'PAYLOAD_TOO_LARGE' });
  });
});

describe.each(ADAPTERS)('Prefix and versions on %s', (adapter) => {
  it('are the host’s: they hold for routes and Location', async () => {
    const host = await startHttpHost({
      adapter,
      routes: [
        { path: 'agents', version: '2' },
        { path: 'admin/agents', version: VERSION_NEUTRAL },
      ],
      worker: false,
      configure: (app) => {
        app.setGlobalPrefix('api');
        app.enableVersioning({ type: VersioningType.URI });
      },
    });
    const { headers } = await host.post('/api/v2/agents/runs?wait=0', { agent: 'clerk', prompt: 'x' }).expect(202);
    expect(headers.location).toMatch(/^\/api\/v2\/agents\/runs\/[^/?]+$/);
    await host.get(String(headers.location)).expect(200);
    await host.get(String(headers.location).replace('v2/agents', 'admin/agents')).expect(200);
    await host.get('/api/agents/runs').expect(404);
    expect((await host.post('/api/v2/agents/runs', '{').expect(400)).body.code).toBe('INVALID_REQUEST');
    await host.close();
  });
});
