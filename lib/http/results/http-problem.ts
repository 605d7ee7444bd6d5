import { HttpException, type Logger } from '@nestjs/common';
import { thrownStack } from '../../engine/values/recorded-error.js';
import { AgentRunsError, type ErrorCode, HTTP_STATUS_OF } from '../../errors/agent-runs.error.js';

/** Codes that only the HTTP surface knows, beside those of the package's errors. */
export type HttpProblemCode = ErrorCode | 'UNAUTHENTICATED' | 'NOT_ACCEPTABLE' | 'UNSUPPORTED_MEDIA_TYPE' | 'INTERNAL';

/** The body of every error of these routes. */
export interface HttpProblemBody {
  /** The HTTP status, as Nest's own errors have it. */
  statusCode: number;
  /** Stable; see docs/errors.md. */
  code: HttpProblemCode;
  /** Words for a person; they may change. */
  message: string;
  /** Chosen facts, by the code. */
  details?: Readonly<Record<string, unknown>>;
}

/** An error ready to be sent. A Nest `HttpException`, so that the host's interceptors and loggers know it. */
export class HttpProblem extends HttpException {
  constructor(
    readonly body: HttpProblemBody,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(body, body.statusCode);
    this.message = body.message;
  }
}

export function httpProblem(statusCode: number, code: HttpProblemCode, message: string): HttpProblem {
  return new HttpProblem({ statusCode, code, message });
}

/** The 500 that says nothing. */
export function internalProblem(): HttpProblem {
  return httpProblem(500, 'INTERNAL', 'Something went wrong here. It was logged.');
}

/**
 * The problem for an error of this package; an `HttpException` is the host's own and passes unchanged. Only errors of
 * the request family speak with their own words and details: of the store and of anything unexpected a caller learns
 * only that it happened, never a stack, SQL or internals.
 * @returns null for anything unexpected: log it, then answer with {@link internalProblem}
 */
export function toHttpProblem(error: unknown): Error | null {
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

/** As {@link toHttpProblem}, with a 500 and a line in the log for anything unexpected. @param place for the log */
export function loggedProblem(error: unknown, logger: Pick<Logger, 'error'>, place: string): Error {
  const problem = toHttpProblem(error);
  if (!problem) logger.error(`Unexpected error in ${place}: ${thrownStack(error)}`);
  return problem ?? internalProblem();
}
