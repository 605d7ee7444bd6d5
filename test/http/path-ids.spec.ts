/** An id that a start takes is one by which the run and its session are found, whatever the router allows. */
import { ADAPTERS, startHttpHost, type HttpHost, type HttpHostOptions } from './http-host.js';

let host: HttpHost | undefined;
afterEach(async () => {
  await host?.close();
  host = undefined;
});

const raised: HttpHostOptions = { adapter: 'fastify', fastify: { routerOptions: { maxParamLength: 500 } } };

it.each<[string, HttpHostOptions, number]>([
  ['Express', { adapter: 'express' }, 128],
  ['Fastify', { adapter: 'fastify' }, 100],
  ['Fastify with a higher maxParamLength', raised, 128],
  ['Fastify with an even lower one', { adapter: 'fastify', fastify: { routerOptions: { maxParamLength: 60 } } }, 60],
])('on %s the routes find whatever they accepted, and refuse a longer id by its field', async (_, options, longest) => {
  host = await startHttpHost({ ...options, worker: false });
  const ids = { runId: 'r'.repeat(longest), sessionId: 's'.repeat(longest) };
  const start = { agent: 'clerk', prompt: 'x' };
  const { headers } = await host.post('/agents/runs', { ...start, ...ids }).expect(202);
  expect((await host.get(new URL(String(headers.location), 'http://h').pathname).expect(200)).body.id).toBe(ids.runId);
  await host.get(`/agents/sessions/${ids.sessionId}/messages`).expect(200);
  await host.post(`/agents/runs/${ids.runId.replaceAll('r', '%72')}/cancel`, {}).expect(202);
  for (const field of ['runId', 'sessionId']) {
    const { body } = await host.post('/agents/runs', { ...start, [field]: 'x'.repeat(longest + 1) }).expect(400);
    expect(body).toMatchObject({ code: 'INVALID_REQUEST', details: { fields: [{ field }] } });
    if (longest < 128) expect(body.message).toContain(`at most ${longest} characters`);
  }
  await host.post('/agents/runs', { ...start, requestId: 'q'.repeat(128) }).expect(202);
});

it.each(ADAPTERS)('generated ids are far below any limit on %s', async (adapter) => {
  host = await startHttpHost({ adapter });
  const { body } = await host.post('/agents/runs?wait=10', { agent: 'clerk', prompt: 'call:pay {"cents":5}' });
  expect(body.id.length).toBeLessThan(50);
  expect(body.interactions[0].id.length).toBeLessThan(50);
});
