import { Controller, Get, Logger, Param, UseFilters } from '@nestjs/common';
import { jest } from '@jest/globals';
import { RunService } from '../../../lib/engine/run-service.js';
import { ERROR_CODES } from '../../../lib/errors/agent-runs.error.js';
import { FencedError, StoreUnavailableError } from '../../../lib/errors/store.errors.js';
import { AgentRunsExceptionFilter } from '../../../lib/http.js';
import * as api from '../../../lib/index.js';
import { ADAPTERS, type HttpHost, startHttpHost } from '../http-host.js';

const THROWN: Record<string, unknown> = {
  unavailable: new StoreUnavailableError('connect postgres://app:canary@db'),
  fenced: new FencedError('attempt 3'),
  foreign: Object.assign(new Error('busy'), {
    [Symbol.for('nestjs-agent-runs:error')]: true,
    code: 'SESSION_BUSY',
    details: { runId: 'r' },
  }),
  other: new Error('of the host'),
};

@Controller('mine')
@UseFilters(AgentRunsExceptionFilter)
class HostController {
  constructor(private readonly runs: RunService) {}

  @Get('runs/:id')
  get(@Param('id') id: string) {
    return this.runs.get(id);
  }

  @Get('throws/:what')
  throws(@Param('what') what: string) {
    throw THROWN[what];
  }
}

describe.each(ADAPTERS)("AgentRunsExceptionFilter on a host's controller on %s", (adapter) => {
  let host: HttpHost;
  beforeAll(async () => {
    host = await startHttpHost({ adapter, worker: false, controllers: [HostController] });
  });
  afterAll(() => host.close());
  afterEach(() => jest.restoreAllMocks());

  it('answers errors of RunService as the routes of the package do', async () => {
    const { body } = await host.get('/mine/runs/nothing').expect(404);
    expect(body).toEqual((await host.get('/agents/runs/nothing').expect(404)).body);
    expect(body.code).toBe('RUN_NOT_FOUND');
  });

  it('says nothing of the store, nor of what is not meant for a caller, and logs the latter', async () => {
    const logged = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
    const { body } = await host.get('/mine/throws/unavailable').expect(503);
    expect(JSON.stringify(body)).not.toContain('canary');
    expect(logged).not.toHaveBeenCalled();
    expect((await host.get('/mine/throws/fenced').expect(500)).body.code).toBe('INTERNAL');
    expect(logged).toHaveBeenCalledTimes(1);
  });

  it('knows errors of another copy of the package, and leaves those of the host alone', async () => {
    expect((await host.get('/mine/throws/foreign').expect(409)).body).toMatchObject({
      code: 'SESSION_BUSY',
      details: { runId: 'r' },
    });
    expect((await host.get('/mine/throws/other').expect(500)).body).toEqual({
      statusCode: 500,
      message: 'Internal server error',
    });
  });
});

it('every exported error says its own HTTP status', () => {
  const made = Object.values(api).flatMap((exported) =>
    typeof exported === 'function' && exported.prototype instanceof api.AgentRunsError
      ? [new (exported as new (...args: unknown[]) => api.AgentRunsError)([], { retryable: false })]
      : [],
  );
  expect(made.length).toBeGreaterThan(20);
  for (const error of made) {
    expect(ERROR_CODES).toContain(error.code);
    expect([error.name, error.httpStatus]).toEqual([error.name, expect.any(Number)]);
  }
  expect(new StoreUnavailableError('x').httpStatus).toBe(503);
});
