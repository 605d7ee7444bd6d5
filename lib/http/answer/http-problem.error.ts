import { HttpException } from '@nestjs/common';
import type { ErrorCode } from '../../errors/error-code.js';

/** Codes that only the HTTP surface knows, beside those of the package's errors. */
export type HttpProblemCode = ErrorCode | 'UNAUTHENTICATED' | 'NOT_ACCEPTABLE' | 'UNSUPPORTED_MEDIA_TYPE' | 'INTERNAL';

/** The body of every error of these routes. */
export interface HttpProblemBody {
  statusCode: number;
  /** Stable; see docs/errors.md. */
  code: HttpProblemCode;
  message: string;
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
