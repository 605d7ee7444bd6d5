/**
 * From what a route threw to what its caller is told. Only errors of the request family speak with their own words and details; of the store and of
 * anything unexpected the caller learns nothing but that it happened (never a stack, SQL or internals).
 */
import { HttpException, type Logger } from '@nestjs/common';
import { AgentRunsError } from '../../errors/agent-runs.error.js';
import { thrownStack } from '../../engine/values/thrown-stack.js';
import { HTTP_STATUS_OF } from '../../errors/error-code.js';
import { HttpProblem, type HttpProblemCode } from './http-problem.error.js';

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
  const statusCode = HTTP_STATUS_OF[error.code];
  // The machine's own trouble; all of it looks the same from outside.
  if (statusCode === 503) {
    return httpProblem(503, 'STORE_UNAVAILABLE', 'The runs cannot be reached right now. Try again later.');
  }
  if (error.code === 'JOURNAL_CORRUPT') {
    return httpProblem(500, 'JOURNAL_CORRUPT', 'The stored history of this run cannot be read.');
  }
  if (statusCode === undefined || statusCode >= 500) return null;
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

/** As {@link answerFor}, with a 500 and a line in the log for anything unexpected. @param place for the log */
export function problemFor(error: unknown, logger: Pick<Logger, 'error'>, place: string): Error {
  const answer = answerFor(error);
  if (!answer) logger.error(`Unexpected error in ${place}: ${thrownStack(error)}`);
  return answer ?? internalProblem();
}
