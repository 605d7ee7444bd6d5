import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  ForbiddenException,
  Injectable,
  Module,
  Post,
  UnauthorizedException,
} from '@nestjs/common';
import type { Actor } from '../../lib/contracts/run.js';
import type { HttpRequestLike, RunAction, RunAuthorizer, RunResource, RunScope } from '../../lib/http.js';
import { ADAPTERS, type HttpHost, startHttpHost } from './http-host.js';

const JSON_EVENTS = { accept: 'application/json' };
const READS = ['', '/snapshot', '/messages', '/events', '/budget'];
const WRITES: [string, object][] = [
  ['resume', {}],
  ['retry', {}],
  ['cancel', {}],
  ['operations/resolve', { key: 'k', output: 1 }],
  ['interrupt', {}],
  ['restart', {}],
  ['steer', { message: 'x' }],
  ['budget', { decision: 'grant' }],
  ['interactions/any', { decision: 'approve' }],
];

describe.each(ADAPTERS)('Identity on %s', (adapter) => {
  it('is needed on every route', async () => {
    const host = await startHttpHost({ adapter, worker: false });
    const nobody = { 'x-user': '' };
    const answers = [
      await host.get('/agents/definitions', nobody),
      await host.get('/agents/runs', nobody),
      await host.get('/agents/interactions', nobody),
      await host.get('/agents/sessions/s/messages', nobody),
      await host.post('/agents/runs', { agent: 'clerk', prompt: 'x' }, nobody),
      await host.post('/agents/runs', { nonsense: 1 }, nobody),
    ];
    for (const path of READS) answers.push(await host.get(`/agents/runs/none${path}`, nobody));
    for (const [path, body] of WRITES) answers.push(await host.post(`/agents/runs/none/${path}`, body, nobody));
    for (const { status, body } of answers) expect([status, body.code]).toEqual([401, 'UNAUTHENTICATED']);
    await host.close();
  });

  it.each([
    [null, 401],
    [undefined, 401],
    [{ id: undefined }, 401],
    [{ id: null }, 401],
    [{ id: '' }, 401],
    [{ id: 42 }, 500],
    [{ id: ' ' }, 500],
    [{ id: 'a', roles: 'admin' }, 500],
  ])('B115: an actor %j is nobody', async (actor, status) => {
    const host = await startHttpHost({ adapter, worker: false, routes: { actorResolver: () => actor as Actor } });
    await host.get('/agents/definitions').expect(status);
    await host.close();
  });

  it('comes from a class with dependencies, a token, or a function, after the guards', async () => {
    @Injectable()
    class Names {
      of(request: HttpRequestLike) {
        return String(request.session);
      }
    }
    @Injectable()
    class SessionActor {
      constructor(private readonly names: Names) {}
      resolve(request: HttpRequestLike) {
        return { id: this.names.of(request) };
      }
    }
    @Module({
      providers: [Names, SessionActor, { provide: 'actor', useExisting: SessionActor }],
      exports: [Names, 'actor'],
    })
    class SessionModule {}
    @Injectable()
    class SessionGuard implements CanActivate {
      canActivate(context: ExecutionContext) {
        context.switchToHttp().getRequest<Record<string, unknown>>().session = 'carol';
        return true;
      }
    }
    for (const actorResolver of [
      SessionActor,
      'actor',
      (request: HttpRequestLike) => ({ id: String(request.session) }),
    ]) {
      const host = await startHttpHost({
        adapter,
        worker: false,
        routes: { imports: [SessionModule], guards: [SessionGuard], actorResolver },
      });
      const { body } = await host.post('/agents/runs', { agent: 'clerk', prompt: 'x' }).expect(202);
      await host.post(`/agents/runs/${body.id}/cancel`, {}).expect(202);
      const { body: log } = await host.get(`/agents/runs/${body.id}/events`, JSON_EVENTS);
      expect(log.events.find(({ type }: any) => type === 'run.submitted').data.actor).toEqual({ id: 'carol' });
      expect(log.events.find(({ type }: any) => type === 'run.cancelled').data.by).toBe('carol');
      await host.close();
    }
  });
});

describe('The host’s guards', () => {
  it('come first, and their refusals stay the host’s', async () => {
    const asked: string[] = [];
    const host = await startHttpHost({
      worker: false,
      routes: {
        guards: [
          {
            canActivate: (context) => {
              const who = context.switchToHttp().getRequest<HttpRequestLike>().headers['x-user'];
              if (who === 'mallory') throw new ForbiddenException({ mine: true });
              if (who === 'nobody') throw new UnauthorizedException();
              return who !== 'eve';
            },
          },
        ],
        actorResolver: (request) => {
          asked.push(String(request.headers['x-user']));
          return { id: 'x' };
        },
      },
    });
    expect((await host.get('/agents/runs', { 'x-user': 'mallory' }).expect(403)).body).toEqual({ mine: true });
    expect((await host.get('/agents/runs', { 'x-user': 'nobody' }).expect(401)).body.message).toBe('Unauthorized');
    await host.get('/agents/runs', { 'x-user': 'eve' }).expect(403);
    expect(asked).toEqual([]);
    await host.get('/agents/runs', { 'x-user': 'alice' }).expect(200);
    expect(asked).toEqual(['alice']);
    await host.close();
  });

  it('are those of the registration, so that two may differ', async () => {
    const adminOnly: CanActivate = {
      canActivate: (context) => context.switchToHttp().getRequest<HttpRequestLike>().headers['x-user'] === 'admin',
    };
    const host = await startHttpHost({
      worker: false,
      routes: [{ path: 'agents' }, { path: 'admin/agents', guards: [adminOnly] }],
    });
    await host.get('/agents/runs').expect(200);
    await host.get('/admin/agents/runs').expect(403);
    await host.get('/admin/agents/runs', { 'x-user': 'admin' }).expect(200);
    await host.close();
  });
});

/** Owners may do everything with what is theirs; `reader` may read everything. */
class OwnRuns implements RunAuthorizer {
  readonly asked: [string, RunAction, RunResource][] = [];

  authorize(actor: Actor, action: RunAction, resource: RunResource) {
    this.asked.push([actor.id, action, resource]);
    if (actor.id === 'reader') return ['read', 'list', 'list_interactions', 'definitions'].includes(action);
    return { metadata: { owner: actor.id } };
  }
}

describe.each(ADAPTERS)('B057: authorisation on %s', (adapter) => {
  const authorizer = new OwnRuns();
  let host: HttpHost;
  let mine: { id: string };
  beforeAll(async () => {
    host = await startHttpHost({
      adapter,
      routes: { authorize: (...args) => authorizer.authorize(...args), features: { takeover: true } },
    });
    const { body } = await host.post('/agents/runs?wait=30', {
      agent: 'clerk',
      prompt: 'call:stuck {}',
      sessionId: 'alices',
      requestId: 'q',
      metadata: { owner: 'bob', colour: 'red' },
    });
    mine = body;
  });
  afterAll(() => host.close());
  const bob = { 'x-user': 'bob' };
  const reader = { 'x-user': 'reader' };

  it('a new run is stamped with the scope, whatever the client says', async () => {
    const { body } = await host.get(`/agents/runs/${mine.id}`).expect(200);
    expect(body.metadata).toEqual({ owner: 'alice', colour: 'red' });
  });

  it('another user’s run is not there: 404 on every route, with the words for a run that does not exist', async () => {
    const words = (text: string, id: string) => text.replaceAll(id, 'ID');
    for (const path of READS) {
      const other = await host.get(`/agents/runs/${mine.id}${path}`, { ...bob, ...JSON_EVENTS }).expect(404);
      const none = await host.get(`/agents/runs/none${path}`, { ...bob, ...JSON_EVENTS }).expect(404);
      expect(words(other.text, mine.id)).toBe(words(none.text, 'none'));
    }
    for (const [path, body] of WRITES) {
      const { body: answer } = await host.post(`/agents/runs/${mine.id}/${path}`, body, bob).expect(404);
      expect(answer.code).toBe('RUN_NOT_FOUND');
      await host.post(`/agents/runs/${mine.id}/${path}`, { nonsense: 1 }, bob).expect(404);
    }
    await host
      .post(`/agents/runs/${mine.id}/resume`, { allowRunningTakeover: true, reason: 'mine now' }, bob)
      .expect(404);
    expect((await host.get(`/agents/runs/${mine.id}`)).body.status).toBe('needs_attention');
  });

  it('a list holds what lies within the scope, whatever the filter says', async () => {
    expect((await host.get('/agents/runs')).body.runs.map(({ id }: any) => id)).toEqual([mine.id]);
    for (const query of ['', '?sessionId=alices', '?metadata.owner=alice', '?metadata.colour=red']) {
      expect((await host.get(`/agents/runs${query}`, bob).expect(200)).body).toEqual({ runs: [] });
    }
  });

  it('PPL-9: asks of somebody else are neither listed nor decided, whatever the filter says', async () => {
    const { body: asking } = await host.post('/agents/runs?wait=30', {
      agent: 'clerk',
      prompt: 'call:pay {"cents":5}',
      sessionId: 'asked',
    });
    const [ask] = asking.interactions;
    const queries = ['', '?status=pending', '?sessionId=asked', `?runId=${asking.id}`, '?agent=clerk'];
    for (const query of queries) {
      expect((await host.get(`/agents/interactions${query}`)).body).toEqual({ interactions: [ask] });
      expect((await host.get(`/agents/interactions${query}`, bob).expect(200)).body).toEqual({ interactions: [] });
    }
    expect((await host.get('/agents/interactions', reader).expect(200)).body.interactions).toEqual([ask]);
    const path = `/agents/runs/${asking.id}/interactions/${ask.id}`;
    expect((await host.post(path, { decision: 'approve' }, bob).expect(404)).body.code).toBe('RUN_NOT_FOUND');
    expect((await host.post(path, { decision: 'approve' }, reader).expect(403)).body.code).toBe('FORBIDDEN');
    authorizer.asked.length = 0;
    await host.post(path, { decision: 'deny' }).expect(200);
    expect(authorizer.asked).toEqual([
      ['alice', 'decide', { run: expect.objectContaining({ runId: asking.id }), interaction: expect.anything() }],
    ]);
    expect(authorizer.asked[0]?.[2].interaction).toMatchObject({ id: ask.id, tool: 'pay', arguments: { cents: 5 } });
    await host.runs.result(asking.id);
  });

  it('a session of somebody else is neither read nor joined', async () => {
    await host.get('/agents/sessions/alices/messages', bob).expect(403);
    const join = { agent: 'clerk', prompt: 'say:what did alice say', sessionId: 'alices', enqueue: true };
    expect((await host.post('/agents/runs', join, bob).expect(403)).body.code).toBe('FORBIDDEN');
    await host.get('/agents/sessions/alices/messages').expect(200);
  });

  it('a request id of somebody else is answered with a conflict, not with their run', async () => {
    const request = { agent: 'clerk', prompt: 'say:secret', requestId: 'same' };
    const theirs = (await host.post('/agents/runs?wait=30', request).expect(200)).body as { id: string };
    for (const prompt of [request.prompt, 'say:something else']) {
      const { status, body, text } = await host.post('/agents/runs', { ...request, prompt }, bob);
      expect([status, body.code]).toEqual([409, 'REQUEST_CONFLICT']);
      for (const told of ['secret', 'alice', theirs.id]) expect(text).not.toContain(told);
    }
    const { body } = await host.post('/agents/runs', { ...request, prompt: 'say:something else' }).expect(409);
    expect(body.details).toEqual({ runId: theirs.id });
  });

  it('what may be seen but not done is 403', async () => {
    await host.get(`/agents/runs/${mine.id}`, reader).expect(200);
    for (const [path, body] of WRITES) {
      const { body: answer } = await host.post(`/agents/runs/${mine.id}/${path}`, body, reader).expect(403);
      expect(answer.code).toBe('FORBIDDEN');
    }
    await host.post('/agents/runs', { agent: 'clerk', prompt: 'x' }, reader).expect(403);
  });

  it('the hook is told what is stored, not what is asked', async () => {
    authorizer.asked.length = 0;
    await host.post(`/agents/runs/${mine.id}/cancel`, { nonsense: 1 });
    expect(authorizer.asked).toEqual([
      [
        'alice',
        'cancel',
        {
          run: {
            runId: mine.id,
            agent: 'clerk',
            version: '1',
            status: 'needs_attention',
            sessionId: 'alices',
            owner: { id: 'alice' },
            metadata: { owner: 'alice', colour: 'red' },
          },
        },
      ],
    ]);
  });
});

describe('The authorize hook', () => {
  it.each([undefined, null, 0, 1, '', 'yes', false])('means no by anything but true or a scope: %p', async (answer) => {
    const host = await startHttpHost({ worker: false, routes: { authorize: () => answer as boolean } });
    await host.get('/agents/runs').expect(403);
    await host.get('/agents/definitions').expect(403);
    await host.get('/agents/interactions').expect(403);
    await host.get('/agents/sessions/s/messages').expect(403);
    await host.post('/agents/runs', { agent: 'clerk', prompt: 'x' }).expect(403);
    const run = await host.runs.start({ agent: 'clerk', prompt: 'x' });
    await host.get(`/agents/runs/${run.id}`).expect(404);
    await host.close();
  });

  it.each<unknown>([
    [],
    { allowed: false },
    { metadata: undefined },
    { metadata: { tenant: undefined } },
    { metadata: ['acme'] },
    { metadata: { tenant: {} } },
    { sessionId: undefined },
    { sessionId: '' },
    { agent: 7 },
    { tenant: 'acme' },
    new Date(0).toISOString,
  ])('means no by what only looks like a scope: %p', async (answer) => {
    const host = await startHttpHost({ worker: false, routes: { authorize: () => answer as RunScope } });
    const run = await host.runs.start({ agent: 'clerk', prompt: 'x' });
    await host.get('/agents/runs').expect(403);
    await host.post('/agents/runs', { agent: 'clerk', prompt: 'x' }).expect(403);
    await host.get(`/agents/runs/${run.id}`).expect(404);
    await host.close();
  });

  it('may throw the host’s own exceptions', async () => {
    const host = await startHttpHost({
      worker: false,
      routes: {
        authorize: () => {
          throw new ForbiddenException({ mine: true });
        },
      },
    });
    expect((await host.get('/agents/runs').expect(403)).body).toEqual({ mine: true });
    await host.close();
  });

  it('OWN-4: a takeover is an action of its own, and off unless switched on', async () => {
    const actions: RunAction[] = [];
    const takeover = { allowRunningTakeover: true, reason: 'gone' };
    const off = await startHttpHost({ worker: false });
    const run = await off.runs.start({ agent: 'clerk', prompt: 'x' });
    const refused = await off.post(`/agents/runs/${run.id}/resume`, takeover).expect(403);
    expect(refused.body.code).toBe('FORBIDDEN');
    await off.close();
    const on = await startHttpHost({
      worker: false,
      routes: {
        features: { takeover: true },
        authorize: (_actor, action) => {
          actions.push(action);
          return action !== 'takeover';
        },
      },
    });
    const other = await on.runs.start({ agent: 'clerk', prompt: 'x' });
    await on.post(`/agents/runs/${other.id}/resume`, takeover).expect(403);
    expect(actions).toEqual(['resume', 'takeover', 'read']);
    await on.close();
  });

  it('BUD-2: a new limit is an action of its own on top of a resume, as a grant is', async () => {
    const actions: RunAction[] = [];
    const host = await startHttpHost({
      routes: {
        authorize: (actor, action) => {
          actions.push(action);
          return action !== 'budget' || actor.id === 'boss';
        },
      },
    });
    const { body: run } = await host.post('/agents/runs?wait=30', {
      agent: 'clerk',
      prompt: 'call:echo {}|say:done',
      budget: { maxTotalTokens: 3 },
    });
    actions.length = 0;
    const budget = { maxTotalTokens: 100 };
    await host.post(`/agents/runs/${run.id}/resume`, { budget }).expect(403);
    await host.post(`/agents/runs/${run.id}/budget`, { decision: 'grant' }).expect(403);
    expect(actions).toEqual(['resume', 'budget', 'read', 'budget', 'read']);
    expect((await host.get(`/agents/runs/${run.id}`)).body).toMatchObject({
      status: 'waiting',
      budget: { maxTotalTokens: 3 },
    });
    await host.post(`/agents/runs/${run.id}/resume`, { budget }, { 'x-user': 'boss' }).expect(202);
    expect((await host.runs.result(run.id)).status).toBe('completed');
    // So is a new turn limit.
    actions.length = 0;
    for (const verb of ['retry', 'restart']) {
      await host.post(`/agents/runs/${run.id}/${verb}`, { maxTurns: 100 }).expect(403);
    }
    expect(actions).toEqual(['retry', 'budget', 'read', 'restart', 'budget', 'read']);
    await host.post(`/agents/runs/${run.id}/restart`, { maxTurns: 100 }, { 'x-user': 'boss' }).expect(202);
    await host.close();
  });

  it('PPL-2: does not stand in for the role that an ask is for', async () => {
    const host = await startHttpHost({ routes: { authorize: () => true } });
    const { body: run } = await host.post('/agents/runs?wait=30', { agent: 'clerk', prompt: 'call:wire {}' });
    const path = `/agents/runs/${run.id}/interactions/${run.interactions[0].id}`;
    const { body } = await host.post(path, { decision: 'approve' }).expect(403);
    expect(body).toMatchObject({ code: 'FORBIDDEN', details: { approverRole: 'finance' } });
    await host.post(path, { decision: 'approve' }, { 'x-roles': 'finance' }).expect(200);
    await host.close();
  });

  it('PPL-9: narrows a list of asks by session and agent as well', async () => {
    const scopes: RunScope[] = [];
    const host = await startHttpHost({
      routes: { authorize: (_actor, action) => (action === 'list_interactions' ? (scopes.at(-1) as RunScope) : true) },
    });
    const ask = { agent: 'clerk', prompt: 'call:pay {"cents":5}' };
    for (const sessionId of ['one', 'two']) {
      await host.post('/agents/runs?wait=30', { ...ask, sessionId, metadata: { tenant: sessionId, n: 1 } }).expect(200);
    }
    const sessions = async (scope: RunScope, query = '') => {
      scopes.push(scope);
      const { body } = await host.get(`/agents/interactions${query}`).expect(200);
      return body.interactions.map(({ sessionId }: any) => sessionId);
    };
    expect(await sessions({})).toEqual(['one', 'two']);
    expect(await sessions({ sessionId: 'two' })).toEqual(['two']);
    expect(await sessions({ sessionId: 'two' }, '?sessionId=one')).toEqual([]);
    expect(await sessions({ agent: 'clerk', metadata: { tenant: 'one', n: 1 } })).toEqual(['one']);
    expect(await sessions({ metadata: { tenant: 'one', n: 2 } })).toEqual([]);
    expect(await sessions({ agent: 'other' })).toEqual([]);
    await host.close();
  });
});

@Controller('mine')
class HostController {
  @Post()
  post() {
    return {};
  }
}

describe.each(ADAPTERS)('The host’s own routes on %s', (adapter) => {
  it('keep their own answers to bodies that cannot be read', async () => {
    const host = await startHttpHost({ adapter, worker: false, controllers: [HostController] });
    const { body } = await host.post('/mine', '{').expect(400);
    expect(body).not.toHaveProperty('code', 'INVALID_REQUEST');
    expect(body.statusCode).toBe(400);
    await host.close();
  });
});
