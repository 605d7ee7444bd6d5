/** What a start may say is judged alike, whether it comes over HTTP or from code. */
import { AgentRunsError } from '../../lib/errors/agent-runs.error.js';
import type { StartOptions } from '../../lib/contracts/run-requests.js';
import { ADAPTERS, type HttpHost, startHttpHost } from './http-host.js';

const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, n]));

describe.each(ADAPTERS)('A start on %s and one from code', (adapter) => {
  let host: HttpHost;
  beforeAll(async () => {
    host = await startHttpHost({ adapter, worker: false });
  });
  afterAll(() => host.close());

  it.each<[string, Partial<StartOptions>, boolean]>([
    ['191 emoji of metadata', { metadata: { mood: '🙂'.repeat(191) } }, true],
    ['192 emoji of metadata', { metadata: { mood: '🙂'.repeat(192) } }, false],
    ['64 keys of metadata', { metadata: keys(64) }, true],
    ['65 keys of metadata', { metadata: keys(65) }, false],
    ['a key with a blank', { metadata: { 'a b': 1 } }, false],
    ['a key __proto__', { metadata: JSON.parse('{"__proto__":1}') as Record<string, number> }, false],
    ['a nested value', { metadata: { a: {} } as never }, false],
    ['a zero-width space as a prompt', { prompt: '\u200b' }, false],
    ['blanks as a prompt', { prompt: ' \n' }, false],
    ['an emoji as a prompt', { prompt: '🙂' }, true],
  ])('SUB-3: %s', async (_what, given, isFit) => {
    const request = { agent: 'clerk', prompt: 'x', ...given };
    const code = await host.runs.start(request).then(
      () => null,
      (error: AgentRunsError) => error.code,
    );
    const { status, body } = await host.post('/agents/runs', request);
    expect(code).toBe(isFit ? null : 'INVALID_REQUEST');
    expect([status, body.code]).toEqual(isFit ? [202, undefined] : [400, 'INVALID_REQUEST']);
  });

  it('one interaction is read by its id, also after its decision, and names who started the run', async () => {
    const own = await startHttpHost({ adapter });
    const { body: run } = await own.post('/agents/runs?wait=10', { agent: 'clerk', prompt: 'call:pay {"cents":5}' });
    expect(run.actor).toEqual({ id: 'alice' });
    const [asked] = run.interactions;
    const path = `/agents/runs/${run.id}/interactions/${asked.id}`;
    expect((await own.get(path).expect(200)).body).toEqual(asked);
    expect(asked).toMatchObject({ tool: 'pay', actor: { id: 'alice' } });
    await own.post(path, { decision: 'deny' }).expect(200);
    expect((await own.get(path).expect(200)).body).toMatchObject({ status: 'denied', decision: { by: 'alice' } });
    expect((await own.get(`/agents/runs/${run.id}/interactions/none`).expect(404)).body.code).toBe(
      'INTERACTION_NOT_FOUND',
    );
    expect((await own.get('/agents/runs').expect(200)).body.runs[0].actor).toEqual({ id: 'alice' });
    await own.close();
  });
});
