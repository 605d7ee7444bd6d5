/**
 * From what a route threw to what its caller is told. Only errors of the request family speak with their own words and details; of the store and of
 * anything unexpected the caller learns nothing but that it happened (never a stack, SQL or internals).
 */
import { HttpException } from '@nestjs/common';
import { AgentRunsError } from '../../errors/agent-runs.error.js';
import type { ErrorCode } from '../../errors/error-code.js';
import { HttpProblem, type HttpProblemCode } from './http-problem.error.js';

const STATUS_OF: Partial<Record<ErrorCode, number>> = {
  INVALID_REQUEST: 400,
  INVALID_CURSOR: 400,
  FORBIDDEN: 403,
  RUN_NOT_FOUND: 404,
  INTERACTION_NOT_FOUND: 404,
  AGENT_NOT_FOUND: 404,
  SESSION_BUSY: 409,
  REQUEST_CONFLICT: 409,
  RUN_EXISTS: 409,
  ILLEGAL_TRANSITION: 409,
  RUN_LEASED: 409,
  ALREADY_DECIDED: 409,
  OPEN_INTERACTIONS: 409,
  OPERATION_CONFLICT: 409,
  VERSION_UNAVAILABLE: 409,
  INTERACTION_EXPIRED: 410,
  PAYLOAD_TOO_LARGE: 413,
  INVALID_ANSWER: 422,
  INVALID_ARGUMENTS: 422,
  INPUT_REFUSED: 422,
  TOO_MANY_PENDING: 429,
};

/** The machine's own trouble; all of them look the same from outside. */
const UNAVAILABLE: readonly ErrorCode[] = [
  'STORE_UNAVAILABLE',
  'STORE_CONFLICT',
  'STORE_BROKEN',
  'STORE_LOCKED',
  'NEWER_SCHEMA',
];

export function httpProblem(
  statusCode: number,
  code: HttpProblemCode,
  message: string,
  details?: Readonly<Record<string, unknown>>,
): HttpProblem {
  return new HttpProblem({ statusCode, code, message, ...(details ? { details } : {}) });
}

/** The 500 that says nothing. */
export function internalProblem(): HttpProblem {
  return httpProblem(500, 'INTERNAL', 'Something went wrong here. It was logged.');
}

/**
 * The answer for an error of this package, or for an `HttpException` (the host's own, passed on unchanged).
 * @returns null for anything unexpected: log it, then answer with {@link internalProblem}
 */
export function answerFor(error: unknown): Error | null {
  if (error instanceof HttpException) return error;
  if (!AgentRunsError.is(error)) return null;
  if (UNAVAILABLE.includes(error.code)) {
    return httpProblem(503, 'STORE_UNAVAILABLE', 'The runs cannot be reached right now. Try again later.');
  }
  if (error.code === 'JOURNAL_CORRUPT') {
    return httpProblem(500, 'JOURNAL_CORRUPT', 'The stored history of this run cannot be read.');
  }
  const statusCode = STATUS_OF[error.code];
  if (statusCode === undefined) return null;
  const hasDetails = Object.keys(error.details).length > 0;
  return new HttpProblem(
    { statusCode, code: error.code, message: error.message, ...(hasDetails ? { details: error.details } : {}) },
    statusCode === 429 ? { 'Retry-After': retryAfterSeconds(error.details.retryAfterMs) } : {},
  );
}

/** RFC 9110 section 10.2.3: whole seconds, never earlier than hinted. */
function retryAfterSeconds(hintMs: unknown): string {
  const seconds = typeof hintMs === 'number' && Number.isFinite(hintMs) ? Math.ceil(hintMs / 1000) : 1;
  return String(Math.max(1, seconds));
}
