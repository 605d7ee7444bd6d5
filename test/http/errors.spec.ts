import { setImmediate } from 'node:timers/promises';
import { Catch, type ExceptionFilter, HttpException, Logger } from '@nestjs/common';
import { jest } from '@jest/globals';
import { RunService } from '../../lib/engine/run-service.js';
import { StoreUnavailableError } from '../../lib/errors/store.errors.js';
import { TooManyPendingError } from '../../lib/errors/request.errors.js';
import { ADAPTERS, type HttpHost, startHttpHost } from './http-host.js';

const CANARY = 'mysql://root:hunter2@db';

describe.each(ADAPTERS)('Errors on %s', (adapter) => {
  let host: HttpHost;
  beforeAll(async () => {
    @Catch(HttpException)
    class HostFilter implements ExceptionFilter {
      catch(): void {
        throw new Error('the host’s filter must not be asked');
      }
    }
    host = await startHttpHost({
      adapter,
      worker: false,
      configure: (app) => app.useGlobalFilters(new HostFilter()),
    });
  });
  afterAll(() => host.close());
  afterEach(() => jest.restoreAllMocks());

  const failWith = (error: unknown) => {
    jest.spyOn(host.app.get(RunService), 'get').mockRejectedValue(error);
    jest.spyOn(host.app.get(RunService), 'start').mockRejectedValue(error);
  };

  it('I10: a store that cannot be reached is 503, without its words', async () => {
    failWith(new StoreUnavailableError(`connect ECONNREFUSED ${CANARY}`));
    const { body } = await host.get('/agents/runs/r').expect(503);
    expect(body).toEqual({
      statusCode: 503,
      code: 'STORE_UNAVAILABLE',
      message: expect.not.stringContaining('hunter2'),
    });
  });

  it('SUB-7: a full queue is 429 with Retry-After', async () => {
    failWith(new TooManyPendingError('full', { details: { retryAfterMs: 2500 } }));
    const { body, headers } = await host.post('/agents/runs', { agent: 'clerk', prompt: 'x' }).expect(429);
    expect(body.code).toBe('TOO_MANY_PENDING');
    expect(headers['retry-after']).toBe('3');
  });

  it('B165: anything unexpected is 500 without internals, and logged once with its stack, masked', async () => {
    const logged = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    failWith(
      Object.assign(new Error(`boom ${CANARY}`, { cause: CANARY }), { code: 'EBOOM', config: { auth: CANARY } }),
    );
    const { body, text } = await host.get('/agents/runs/r').expect(500);
    expect(body).toEqual({ statusCode: 500, code: 'INTERNAL', message: expect.any(String) });
    expect(text).not.toMatch(/hunter2|boom|node_modules/);
    expect(logged).toHaveBeenCalledTimes(1);
    const [line] = logged.mock.calls[0] as [string];
    expect(line).toMatch(/^Unexpected error in get: Error EBOOM: boom mysql:\/\/\[redacted\]@db\n\s+at /);
    expect(line).not.toContain('hunter2');
  });

  it('prompts and arguments are not logged', async () => {
    const lines: unknown[] = [];
    for (const level of ['log', 'error', 'warn', 'debug', 'verbose'] as const) {
      jest.spyOn(Logger.prototype, level).mockImplementation((...args: unknown[]) => void lines.push(args));
    }
    await host.post('/agents/runs', { agent: 'clerk', prompt: `say:${CANARY}` });
    await host.post('/agents/runs', { agent: CANARY, prompt: CANARY, [CANARY]: CANARY }).expect(400);
    expect(JSON.stringify(lines)).not.toContain('hunter2');
  });
});

describe.each(ADAPTERS)('Advice to a client on %s', (adapter) => {
  let host: HttpHost;
  beforeAll(async () => {
    host = await startHttpHost({ adapter });
  });
  afterAll(() => host.close());

  /** What callers in the process have, and clients do not. */
  const NOT_OFFERED = /ifExists|resolveTool|RunService|sessionOwner|startAndWait/;
  const clash = async (path: string, body: object) => {
    const answer = await host.post(`/agents/runs${path}`, body).expect(409);
    expect(answer.text).not.toMatch(NOT_OFFERED);
    return answer.body as { code: string; message: string };
  };

  it('names what the routes take', async () => {
    const start = { agent: 'clerk', prompt: 'hang', sessionId: 's', runId: 'mine' };
    await host.post('/agents/runs', start).expect(202);
    expect(await clash('', start)).toMatchObject({
      code: 'RUN_EXISTS',
      message: expect.stringMatching(/^Run mine exists \(\w+\)\. Read it, or leave runId out to start another\.$/),
    });
    expect(await clash('', { ...start, runId: 'other' })).toMatchObject({
      code: 'SESSION_BUSY',
      message: expect.stringContaining('enqueue: true'),
    });
    await host.post('/agents/runs', { ...start, runId: 'other', enqueue: true }).expect(202);
  });

  it('does not promise a takeover, which may be switched off', async () => {
    const { body: run } = await host.post('/agents/runs', { agent: 'clerk', prompt: 'hang' });
    while ((await host.runs.get(run.id)).status !== 'running') await setImmediate();
    expect(await clash(`/${run.id}/resume`, {})).toMatchObject({
      code: 'RUN_LEASED',
      message: expect.stringMatching(/Wait, or, where takeover is allowed, /),
    });
  });

  it('tells how a run goes on that needs a person', async () => {
    const { body: run } = await host.post('/agents/runs?wait=30', { agent: 'clerk', prompt: 'call:stuck {}' });
    expect(run.attention.detail).toMatch(/resolve the operation/);
    expect(JSON.stringify(run)).not.toMatch(NOT_OFFERED);
  });
});
