/** The verdict on a session and the start are one: whoever opens it in between is seen, and the new session is judged. */
import type { Actor } from '../../lib/contracts/run.js';
import type { RunAction, RunResource } from '../../lib/http.js';
import { ADAPTERS, startHttpHost } from './http-host.js';

const body = (who: string) => ({ agent: 'clerk', prompt: `say:secret of ${who}`, sessionId: 's', enqueue: true });

/** Lets both look at a session that is not there yet, before either of them may go on. */
function bothFirst() {
  const looks: RunResource[] = [];
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  return {
    looks,
    look: async (resource: RunResource) => {
      looks.push(resource);
      if (looks.length === 2) open();
      await opened;
    },
  };
}

const tenantOf = ({ id }: Actor) => id.split('@')[1] as string;

const POLICIES = {
  'a scope of metadata': (actor: Actor) => ({ metadata: { tenant: tenantOf(actor) } }),
  'a scope with the session’s owner': (actor: Actor) => ({ sessionOwner: tenantOf(actor) }),
  'true or false by who started the latest run': (actor: Actor, _action: RunAction, { run }: RunResource) =>
    !run?.owner || tenantOf(run.owner) === tenantOf(actor),
};

describe.each(ADAPTERS)('Two tenants and one new session on %s', (adapter) => {
  it.each(Object.entries(POLICIES))('one has it and the other reads nothing: %s', async (_name, policy) => {
    const gate = bothFirst();
    const host = await startHttpHost({
      adapter,
      routes: {
        authorize: async (actor, action, resource) => {
          if (action === 'start' && gate.looks.length < 2) await gate.look(resource);
          return policy(actor, action, resource);
        },
      },
    });
    const users = ['alice@acme', 'mallory@evil'];
    const answers = await Promise.all(
      users.map((who) => host.post('/agents/runs?wait=10', body(who), { 'x-user': who }).then((answer) => answer)),
    );
    expect(gate.looks.slice(0, 2).map(({ run }) => run)).toEqual([null, null]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 403]);
    const lost = users[answers.findIndex(({ status }) => status === 403)] as string;
    const won = users.find((who) => who !== lost) as string;
    expect(answers.find(({ status }) => status === 403)?.body).toEqual({
      statusCode: 403,
      code: 'FORBIDDEN',
      message: 'You may not do this: start.',
    });
    await host.get('/agents/sessions/s/messages', { 'x-user': lost }).expect(403);
    const { text } = await host.get('/agents/sessions/s/messages', { 'x-user': won }).expect(200);
    expect(text).toContain(`secret of ${won}`);
    expect(text).not.toContain(`secret of ${lost}`);
    await host.close();
  });

  it.each(Object.entries(POLICIES))('colleagues of one tenant both get in: %s', async (_name, policy) => {
    const gate = bothFirst();
    const host = await startHttpHost({
      adapter,
      routes: {
        authorize: async (actor, action, resource) => {
          if (action === 'start' && gate.looks.length < 2) await gate.look(resource);
          return policy(actor, action, resource);
        },
      },
    });
    const users = ['alice@acme', 'bob@acme'];
    const answers = await Promise.all(
      users.map((who) => host.post('/agents/runs?wait=10', body(who), { 'x-user': who }).then((answer) => answer)),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    const { text } = await host.get('/agents/sessions/s/messages', { 'x-user': 'bob@acme' }).expect(200);
    for (const who of users) expect(text).toContain(`secret of ${who}`);
    await host.close();
  });

  it('a session that is opened while its reader is judged stays unread', async () => {
    const host = await startHttpHost({
      adapter,
      routes: {
        authorize: async (actor, action) => {
          if (action === 'read_session')
            await host.runs.startAndWait({ ...body('alice'), sessionOwner: 'alice@acme', actor: { id: 'alice@acme' } });
          return { metadata: { tenant: tenantOf(actor) } };
        },
      },
    });
    const { body: refused } = await host.get('/agents/sessions/s/messages', { 'x-user': 'mallory@evil' }).expect(403);
    expect(refused.code).toBe('FORBIDDEN');
    await host.close();
  });

  it('a session that the host opened for nobody is judged by what is stored of it', async () => {
    const policy = POLICIES['a scope of metadata'];
    const host = await startHttpHost({ adapter, routes: { authorize: policy } });
    await host.runs.startAndWait({ ...body('host'), metadata: { tenant: 'acme' } });
    await host.post('/agents/runs?wait=10', body('alice'), { 'x-user': 'alice@acme' }).expect(200);
    await host.post('/agents/runs', body('mallory'), { 'x-user': 'mallory@evil' }).expect(403);
    await host.close();
  });

  it('a run id of somebody else is taken, and nothing is said of the run', async () => {
    const policy = POLICIES['a scope of metadata'];
    const host = await startHttpHost({ adapter, routes: { authorize: policy } });
    const mine = { agent: 'clerk', prompt: 'say:secret', runId: 'mine' };
    await host.post('/agents/runs?wait=10', mine, { 'x-user': 'alice@acme' }).expect(200);
    const { body: refused, text } = await host.post('/agents/runs', mine, { 'x-user': 'mallory@evil' }).expect(409);
    expect(refused.code).toBe('RUN_EXISTS');
    expect(text).not.toContain('completed');
    await host.close();
  });
});
