import { ForbiddenException } from '@nestjs/common';
import { InvalidConfigurationError } from '../../../lib/errors/configuration.errors.js';
import { AgentRunsError, ERROR_CODES, type ErrorCode } from '../../../lib/errors/agent-runs.error.js';
import { HttpProblem } from '../../../lib/http/results/http-problem.js';
import { toHttpProblem } from '../../../lib/http/results/http-problem.js';
import { TooManyPendingError } from '../../../lib/errors/request.errors.js';
import { FencedError } from '../../../lib/errors/store.errors.js';

class AnyError extends AgentRunsError {
  readonly family = 'request';

  constructor(
    readonly code: ErrorCode,
    details?: Record<string, unknown>,
  ) {
    super('secret words', details ? { details } : {});
  }
}

const statusOf = (code: ErrorCode) => (toHttpProblem(new AnyError(code)) as HttpProblem | null)?.getStatus() ?? null;

describe('Errors of the package over HTTP', () => {
  it('have the status of spec 4.1; those that cannot be meant for a caller have none', () => {
    const byStatus: Record<string, ErrorCode[]> = {};
    for (const code of ERROR_CODES) (byStatus[String(statusOf(code))] ??= []).push(code);
    delete byStatus.null;
    expect(byStatus).toEqual({
      400: ['INVALID_REQUEST', 'INVALID_CURSOR'],
      403: ['FORBIDDEN'],
      404: ['RUN_NOT_FOUND', 'INTERACTION_NOT_FOUND', 'AGENT_NOT_FOUND'],
      409: [
        'SESSION_BUSY',
        'REQUEST_CONFLICT',
        'RUN_EXISTS',
        'ILLEGAL_TRANSITION',
        'RUN_LEASED',
        'ALREADY_DECIDED',
        'OPEN_INTERACTIONS',
        'OPERATION_CONFLICT',
        'VERSION_UNAVAILABLE',
      ],
      410: ['INTERACTION_EXPIRED'],
      413: ['PAYLOAD_TOO_LARGE'],
      422: ['INVALID_ANSWER', 'INVALID_ARGUMENTS', 'INPUT_REFUSED'],
      429: ['TOO_MANY_PENDING'],
      500: ['JOURNAL_CORRUPT'],
      503: [
        'STORE_UNAVAILABLE',
        'STORE_BROKEN',
        'STORE_CONFLICT',
        'STORE_LOCKED',
        'NEWER_SCHEMA',
        'STREAM_INTERRUPTED',
      ],
    });
  });

  it('carry their code, their words and their details', () => {
    const problem = toHttpProblem(new AnyError('RUN_LEASED', { owner: 'w1' })) as HttpProblem;
    expect(problem.body).toEqual({
      statusCode: 409,
      code: 'RUN_LEASED',
      message: 'secret words',
      details: { owner: 'w1' },
    });
    expect((toHttpProblem(new AnyError('SESSION_BUSY')) as HttpProblem).body).not.toHaveProperty('details');
  });

  it.each([
    [1500, '2'],
    [1, '1'],
    [0, '1'],
    [undefined, '1'],
    [Number.NaN, '1'],
    ['soon', '1'],
  ])('SUB-7: TOO_MANY_PENDING with a hint of %p ms says Retry-After: %s', (retryAfterMs, header) => {
    const problem = toHttpProblem(new TooManyPendingError('full', { details: { retryAfterMs } })) as HttpProblem;
    expect(problem.headers).toEqual({ 'Retry-After': header });
  });

  it('B165: say nothing of the store', () => {
    for (const code of ['STORE_UNAVAILABLE', 'STORE_BROKEN', 'JOURNAL_CORRUPT'] as const) {
      const problem = toHttpProblem(new AnyError(code, { sql: 'secret' })) as HttpProblem;
      expect(JSON.stringify(problem.body)).not.toContain('secret');
    }
    expect((toHttpProblem(new AnyError('STORE_LOCKED')) as HttpProblem).body.code).toBe('STORE_UNAVAILABLE');
  });

  it('leave the host’s own exceptions alone, and know nothing of anything else', () => {
    const own = new ForbiddenException();
    expect(toHttpProblem(own)).toBe(own);
    for (const error of [
      new Error('x'),
      'x',
      null,
      undefined,
      new FencedError('x'),
      new InvalidConfigurationError(['x']),
    ]) {
      expect(toHttpProblem(error)).toBeNull();
    }
  });

  it('are known by their brand, whichever copy of the package made them', () => {
    const foreign = Object.assign(new Error('full'), {
      [Symbol.for('nestjs-agent-runs:error')]: true,
      code: 'SESSION_BUSY',
      family: 'request',
      details: {},
    });
    expect((toHttpProblem(foreign) as HttpProblem).body.code).toBe('SESSION_BUSY');
  });
});
