import { afterEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { INestApplication } from '@nestjs/common';
import compress from '@fastify/compress';
import compression from 'compression';
import { type EventSourceMessage, EventSourceParserStream } from 'eventsource-parser/stream';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { FailingStore } from '../support/failing-store.js';
import { until } from '../support/until.js';
import { type AdapterName, ADAPTERS, type HttpHost, type HttpHostOptions, startHttpHost } from './http-host.js';

let host: HttpHost | undefined;
afterEach(async () => {
  await host?.close();
  host = undefined;
});

async function listening(options: HttpHostOptions): Promise<{ host: HttpHost; url: string; port: number }> {
  host = await startHttpHost(options);
  await host.app.listen(0, '127.0.0.1');
  const { port } = host.app.getHttpServer().address() as AddressInfo;
  return { host, url: `http://127.0.0.1:${port}`, port };
}

const asAlice = { 'x-user': 'alice', accept: 'text/event-stream' };

interface Read {
  response: Response;
  events: EventSourceMessage[];
  /** `over` when the response ended, `cut` when its connection did. */
  end: Promise<'over' | 'cut'>;
}

/** Reads a stream with a parser that conforms to the standard. */
async function readStream(url: string, init: RequestInit = {}): Promise<Read> {
  const response = await fetch(url, { ...init, headers: { ...asAlice, ...(init.headers as Record<string, string>) } });
  const events: EventSourceMessage[] = [];
  const read = async (): Promise<'over' | 'cut'> => {
    try {
      const messages = response.body?.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
      for await (const event of messages as unknown as AsyncIterable<EventSourceMessage>) events.push(event);
      return 'over';
    } catch {
      return 'cut';
    }
  };
  return { response, events, end: read() };
}

async function startRun(url: string, prompt: string): Promise<string> {
  const response = await fetch(`${url}/agents/runs`, {
    method: 'POST',
    headers: { 'x-user': 'alice', 'content-type': 'application/json' },
    body: JSON.stringify({ agent: 'clerk', prompt }),
  });
  return ((await response.json()) as { id: string }).id;
}

const typesOf = ({ events }: Read): (string | undefined)[] => events.map(({ event }) => event);

describe.each(ADAPTERS)('a stream of events over %s', (adapter: AdapterName) => {
  it('STR-S1, STR-S2: shows each event once with its id, from the beginning to the end of the run', async () => {
    const { host, url } = await listening({ adapter });
    const id = await startRun(url, 'call:echo {}|say:done');
    const stream = await readStream(`${url}/agents/runs/${id}/events`);
    expect(await stream.end).toBe('over');
    const { events } = await host.runs.events(id);
    expect(
      stream.events.map(({ id, event, data }) => ({ id, type: event, data: JSON.parse(data) as unknown })),
    ).toEqual(events.map((event) => ({ ...event, id: String(event.id) })));
    expect(events.at(-1)?.type).toBe('run.completed');
    const { headers } = stream.response;
    expect(headers.get('content-type')).toMatch(/^text\/event-stream/);
    expect(headers.get('cache-control')).toBe('no-cache, no-transform');
    expect(headers.get('x-accel-buffering')).toBe('no');
  });

  it('STR-S2: goes on after Last-Event-ID, which wins over the query of the first connection', async () => {
    const { host, url } = await listening({ adapter });
    const id = await startRun(url, 'say:done');
    await host.runs.result(id);
    const whole = await readStream(`${url}/agents/runs/${id}/events`);
    await whole.end;
    for (const [query, last] of [
      ['', '2'],
      ['?after=0', '2.4'],
      ['?after=2', ''],
      ['?after=2.1', undefined],
    ] as const) {
      const rest = await readStream(`${url}/agents/runs/${id}/events${query}`, {
        headers: last === undefined ? {} : { 'last-event-id': last },
      });
      await rest.end;
      expect(rest.events).toEqual(whole.events.slice(2));
    }
  });

  it.each([
    ['a cursor ahead of the run', '?after=99', 400, 'INVALID_CURSOR'],
    ['a cursor that is none', '?after=x', 400, 'INVALID_REQUEST'],
    ['a page size', '?limit=5', 400, 'INVALID_REQUEST'],
    ['a run that is not there', '', 404, 'RUN_NOT_FOUND'],
  ])('STR-S2: answers %s with a problem before the stream begins', async (_, query, status, code) => {
    const { host, url } = await listening({ adapter });
    const id = status === 404 ? 'nobody' : await startRun(url, 'say:done');
    if (status !== 404) await host.runs.result(id);
    const response = await fetch(`${url}/agents/runs/${id}/events${query}`, { headers: asAlice });
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ code });
  });

  it('STR-S1: a run is started and streamed in one request, and deduplicated to the first from its first event', async () => {
    const { url } = await listening({ adapter });
    const post = () =>
      readStream(`${url}/agents/runs`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ agent: 'clerk', prompt: 'say:done', requestId: 'one' }),
      });
    const first = await post();
    expect(await first.end).toBe('over');
    expect(first.response.status).toBe(200);
    expect(first.response.headers.get('location')).toMatch(/^\/agents\/runs\/[^/]+$/);
    expect(typesOf(first).at(-1)).toBe('run.completed');
    const second = await post();
    expect(await second.end).toBe('over');
    expect(second.response.headers.get('location')).toBe(first.response.headers.get('location'));
    expect(second.events).toEqual(first.events);
  });

  it('STR-S1: a start that is refused keeps its status, and wait goes with JSON only', async () => {
    const { url } = await listening({ adapter });
    const post = async (query: string, agent: string) => {
      const response = await fetch(`${url}/agents/runs${query}`, {
        method: 'POST',
        headers: { ...asAlice, 'content-type': 'application/json' },
        body: JSON.stringify({ agent, prompt: 'x' }),
      });
      return [response.status, ((await response.json()) as { code: string }).code];
    };
    expect(await post('', 'nobody')).toEqual([404, 'AGENT_NOT_FOUND']);
    expect(await post('?wait=1', 'clerk')).toEqual([400, 'INVALID_REQUEST']);
  });

  it('B143: compression of the host holds no event back', async () => {
    const configure = (app: INestApplication): void => {
      if (adapter === 'express') app.use(compression({ threshold: 0 }));
      else void (app.getHttpAdapter().getInstance() as { register(plugin: unknown): unknown }).register(compress);
    };
    const { host, url } = await listening({ adapter, configure });
    const id = await startRun(url, 'call:pay {"cents":1}|say:done');
    await host.runs.result(id);
    const stream = await readStream(`${url}/agents/runs/${id}/events`, { headers: { 'accept-encoding': 'gzip, br' } });
    await until(() => typesOf(stream).includes('run.suspended'));
    await host.runs.cancel(id);
    expect(await stream.end).toBe('over');
    expect(stream.response.headers.get('content-encoding')).toBeNull();
  });

  it('STR-S1: headers of the host stand beside those of the stream', async () => {
    const configure = (app: INestApplication): void => app.enableCors({ origin: 'https://desk.example' });
    const { host, url } = await listening({ adapter, configure });
    const id = await startRun(url, 'say:done');
    await host.runs.result(id);
    const stream = await readStream(`${url}/agents/runs/${id}/events`);
    await stream.end;
    expect(stream.response.headers.get('access-control-allow-origin')).toBe('https://desk.example');
  });

  it('STR-S4: is cut, not ended, when the store is lost', async () => {
    const store = new FailingStore(new MemoryRunStore());
    const { host, url } = await listening({ adapter, store });
    const id = await startRun(url, 'call:pay {"cents":1}');
    await host.runs.result(id);
    const stream = await readStream(`${url}/agents/runs/${id}/events`);
    await until(() => typesOf(stream).includes('run.suspended'));
    store.fail('follow', { times: Number.POSITIVE_INFINITY });
    expect(await stream.end).toBe('cut');
  });

  it('STR-S2: is cut after its time, so that the client is authorised again', async () => {
    const { host, url } = await listening({ adapter, routes: { streamMaxAge: '300ms' } });
    const id = await startRun(url, 'call:pay {"cents":1}');
    await host.runs.result(id);
    const stream = await readStream(`${url}/agents/runs/${id}/events`);
    expect(await stream.end).toBe('cut');
    expect(typesOf(stream)).toContain('run.suspended');
  });

  it('B140, B141: a client that goes away ends its stream within a second, also after a posted body, and no run', async () => {
    const store = new FailingStore(new MemoryRunStore());
    const { host, url } = await listening({ adapter, store });
    const body = JSON.stringify({ agent: 'clerk', prompt: 'call:pay {"cents":1}|say:done', runId: 'r-1' });
    const client = httpRequest(`${url}/agents/runs`, {
      method: 'POST',
      headers: { ...asAlice, 'content-type': 'application/json' },
    }).end(body);
    const [response] = (await once(client, 'response')) as [IncomingMessage];
    let text = '';
    response.on('data', (chunk) => (text += String(chunk))).on('error', () => undefined);
    await until(() => text.includes('event: run.suspended'));
    client.destroy();
    await new Promise((later) => setTimeout(later, 1_000));
    const reads = store.count('follow');
    await new Promise((later) => setTimeout(later, 500));
    expect(store.count('follow')).toBe(reads);
    expect((await host.runs.get('r-1')).status).toBe('waiting');
  });

  it('STR-S3: clients that stop reading leave no reads and no stream behind', async () => {
    const store = new FailingStore(new MemoryRunStore());
    const { host, url, port } = await listening({ adapter, store });
    const id = await startRun(url, 'call:pay {"cents":1}|say:done');
    await host.runs.result(id);
    const before = await connectionsOf(host.app);
    const sockets = await Promise.all(Array.from({ length: 100 }, () => stalledReader(port, id)));
    for (const socket of sockets) socket.destroy();
    await until(async () => (await connectionsOf(host.app)) <= before, 'all connections are closed');
    await new Promise((later) => setTimeout(later, 300));
    const reads = store.count('follow');
    await new Promise((later) => setTimeout(later, 500));
    expect(store.count('follow')).toBe(reads);
  });
});

/** Asks for the stream of a run and never reads what comes. */
function stalledReader(port: number, runId: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.pause();
      socket.write(
        `GET /agents/runs/${runId}/events HTTP/1.1\r\nhost: x\r\nx-user: alice\r\naccept: text/event-stream\r\n\r\n`,
        () => resolve(socket),
      );
    });
    socket.once('error', reject);
  });
}

function connectionsOf(app: INestApplication): Promise<number> {
  const server = app.getHttpServer() as { getConnections(done: (error: Error | null, count: number) => void): void };
  return new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
}
