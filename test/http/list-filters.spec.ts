import type { RunScope } from '../../lib/http.js';
import { ADAPTERS, type HttpHost, startHttpHost } from './http-host.js';

describe.each(ADAPTERS)('Lists on %s', (adapter) => {
  let host: HttpHost;
  let scope: RunScope | true = true;
  const ids: Record<'alice' | 'bob' | 'asking', string> = { alice: '', bob: '', asking: '' };
  let between: string;

  const start = async (prompt: string, user: string, metadata = {}): Promise<string> => {
    const body = { agent: 'clerk', prompt, metadata };
    return (await host.post('/agents/runs?wait=30', body, { 'x-user': user }).expect(200)).body.id as string;
  };
  const runs = async (query: string): Promise<string[]> =>
    (await host.get(`/agents/runs?${query}`).expect(200)).body.runs.map(({ id }: { id: string }) => id);
  const asks = async (query: string): Promise<string[]> =>
    (await host.get(`/agents/interactions?${query}`).expect(200)).body.interactions.map(
      ({ runId }: { runId: string }) => runId,
    );

  beforeAll(async () => {
    host = await startHttpHost({ adapter, routes: { authorize: () => scope } });
    ids.alice = await start('say:x', 'alice', { tenant: 'a' });
    ids.bob = await start('say:x', 'bob', { tenant: 'b' });
    between = new Date((await host.runs.get(ids.bob)).createdAt.getTime() + 1).toISOString();
    while (Date.now() < Date.parse(between)) await new Promise((resolve) => setImmediate(resolve));
    ids.asking = await start('call:pay {"cents":5}', 'alice', { tenant: 'a' });
  });
  afterEach(() => {
    scope = true;
  });
  afterAll(() => host.close());

  it('STO-8: are filtered by who started the runs', async () => {
    expect(await runs('actor=alice')).toEqual([ids.asking, ids.alice]);
    expect(await runs('actor=bob')).toEqual([ids.bob]);
    expect(await runs('actor=Alice')).toEqual([]);
    expect(await asks('actor=alice')).toEqual([ids.asking]);
    expect(await asks('actor=bob')).toEqual([]);
  });

  it('STO-8: take several statuses, repeated or with commas', async () => {
    for (const query of ['status=waiting&status=completed', 'status=waiting,completed']) {
      expect(await runs(query)).toEqual([ids.asking, ids.bob, ids.alice]);
      expect(await runs(`${query}&phase=settled`)).toEqual([ids.bob, ids.alice]);
    }
    expect(await runs('status=failed')).toEqual([]);
    for (const query of ['status=pending&status=used', 'status=used,pending'])
      expect(await asks(query)).toEqual([ids.asking]);
    expect(await asks('status=used&status=denied')).toEqual([]);
  });

  it('STO-8: are filtered by time', async () => {
    expect(await runs(`createdSince=${between}`)).toEqual([ids.asking]);
    expect(await runs(`createdBefore=${between}&actor=alice&status=completed&status=failed`)).toEqual([ids.alice]);
    expect(await runs(`createdSince=1970-01-01&createdBefore=${between}`)).toEqual([ids.bob, ids.alice]);
    expect(await asks(`createdSince=${between}&metadata.tenant=a`)).toEqual([ids.asking]);
    expect(await asks(`createdBefore=${between}`)).toEqual([]);
  });

  it.each([
    ['actor=alice&actor=bob', 'actor'],
    ['actor=', 'actor'],
    ['status=failed&status=done', 'status'],
    ['createdSince=yesterday', 'createdSince'],
    ['createdSince=2026-03-01T09:30:00+02:00', 'createdSince'],
    ['createdBefore=2026-03-01&createdBefore=2026-03-02', 'createdBefore'],
    ['createdAfter=2026-03-01', 'createdAfter'],
  ])('SUB-3: refuse %s and name the field', async (query, field) => {
    for (const list of ['runs', 'interactions']) {
      const { body } = await host.get(`/agents/${list}?${query}`).expect(400);
      expect(body).toMatchObject({ code: 'INVALID_REQUEST', details: { fields: [{ field }] } });
    }
  });

  it('stay within the scope of the authorizer, whatever the filter says', async () => {
    scope = { metadata: { tenant: 'b' } };
    for (const query of ['actor=alice', 'actor=alice&metadata.tenant=a', `createdSince=${between}`]) {
      expect(await runs(query)).toEqual([]);
      expect(await asks(query)).toEqual([]);
    }
    expect(await runs('actor=bob&createdSince=1970-01-01&status=completed,waiting')).toEqual([ids.bob]);
  });
});
