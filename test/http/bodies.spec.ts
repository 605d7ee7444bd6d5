/** How large a body may be is for the host to say: B147. */
import { Controller, type INestApplication, Post, Req } from '@nestjs/common';
import { ADAPTERS, type HttpHost, type HttpHostOptions, startHttpHost } from './http-host.js';

const run = (bytes: number): object => ({ agent: 'clerk', prompt: 'x'.repeat(bytes) });

/** Accepted, or over already. */
const TAKEN = [200, 202];

@Controller('host')
class HostController {
  @Post()
  take(@Req() request: { body?: unknown; rawBody?: Buffer }): object {
    return { hasBody: request.body !== undefined && request.body !== null, raw: request.rawBody?.length ?? null };
  }
}

describe.each(ADAPTERS)('Bodies on %s', (adapter) => {
  let host: HttpHost | undefined;
  const open = async (options: HttpHostOptions): Promise<HttpHost> =>
    (host = await startHttpHost({ adapter, controllers: [HostController], ...options }));
  afterEach(async () => {
    await host?.close();
    host = undefined;
  });

  /** What the host does to take larger bodies than its adapter would. */
  const larger = (app: INestApplication): void => {
    const parsing = app as unknown as { useBodyParser(type: string, options: object): void };
    if (adapter === 'express') parsing.useBodyParser('json', { limit: '8mb' });
    else parsing.useBodyParser('application/json', { bodyLimit: 8_000_000 });
  };

  it("B147: are as large as the host's parser takes them, and 413 in our own shape beyond", async () => {
    const { post } = await open({});
    expect(TAKEN).toContain((await post('/agents/runs?wait=0', run(99_000))).status);
    // Express takes 100 kB by default, Fastify 1 MiB.
    const next = await post('/agents/runs?wait=0', run(110_000));
    if (adapter === 'fastify') expect(TAKEN).toContain(next.status);
    else expect(next.body).toMatchObject({ statusCode: 413, code: 'PAYLOAD_TOO_LARGE' });
    const large = await post('/agents/runs?wait=0', run(5_000_000)).expect(413);
    expect(large.body).toMatchObject({ statusCode: 413, code: 'PAYLOAD_TOO_LARGE', message: expect.any(String) });
  });

  it('B147: of 5 MB are taken where the host has said so, and so are edited arguments of 200 kB', async () => {
    const { post, get } = await open({ configure: larger });
    expect(TAKEN).toContain((await post('/agents/runs?wait=0', run(5_000_000))).status);
    const asked = await post('/agents/runs?wait=30', { agent: 'clerk', prompt: 'call:pay {"cents":1}|say:done' });
    const { id, interactions } = asked.body as { id: string; interactions: { id: string }[] };
    const memo = 'm'.repeat(200_000);
    await post(`/agents/runs/${id}/interactions/${encodeURIComponent(String(interactions[0]?.id))}`, {
      decision: 'approve',
      arguments: { cents: 2, memo },
    }).expect(({ status }) => expect(TAKEN).toContain(status));
    const { body } = await get(`/agents/runs/${id}?wait=30`);
    expect(body).toMatchObject({ status: 'completed' });
  });

  it('B147: with rawBody the routes read the same, and the host has its bytes', async () => {
    const { post } = await open({ application: { rawBody: true } });
    expect(TAKEN).toContain((await post('/agents/runs?wait=0', run(10))).status);
    expect((await post('/host', { a: 1 })).body).toEqual({ hasBody: true, raw: 7 });
  });

  it('B147: without any parser of the host there is none of ours either, and a request is refused in our own shape', async () => {
    const { post } = await open({ application: { bodyParser: false } });
    const answer = await post('/agents/runs?wait=0', run(10));
    const own = await post('/host', { a: 1 });
    if (adapter === 'express') {
      expect(answer.body).toMatchObject({ statusCode: answer.status, code: 'INVALID_REQUEST' });
      expect(own.body).toEqual({ hasBody: false, raw: null });
    } else {
      // There it is the server's own parser that is left.
      expect(TAKEN).toContain(answer.status);
    }
  });
});
