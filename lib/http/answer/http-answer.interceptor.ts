import {
  type CallHandler,
  type ExecutionContext,
  Inject,
  Injectable,
  Logger,
  type NestInterceptor,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { type Observable, catchError, map, throwError } from 'rxjs';
import { HttpAnswer } from './http-answer.js';
import { answerFor, internalProblem } from './http-problem.mapper.js';

/** Renders {@link HttpAnswer}s and turns what a route threw into what its caller is told. Innermost: the host's interceptors see plain values. */
@Injectable()
export class HttpAnswerInterceptor implements NestInterceptor {
  private readonly logger = new Logger(HttpAnswerInterceptor.name);

  constructor(@Inject(HttpAdapterHost) private readonly adapterHost: HttpAdapterHost) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(
      map((value: unknown) => {
        if (!(value instanceof HttpAnswer)) return value;
        const response: unknown = context.switchToHttp().getResponse();
        this.adapterHost.httpAdapter.status(response, value.status);
        for (const [name, text] of Object.entries(value.headers)) {
          this.adapterHost.httpAdapter.setHeader(response, name, text);
        }
        return value.body as unknown;
      }),
      catchError((error: unknown) => {
        const answer = answerFor(error);
        if (!answer) this.logger.error(`Unexpected error in ${context.getHandler().name}: ${describe(error)}`);
        return throwError(() => answer ?? internalProblem());
      }),
    );
  }
}

/** What a mistake in code sounds like: such a message holds names of code and no data. */
const CODE_MISTAKE = /^Cannot (?:read|set) properties of |is not (?:a function|a constructor|defined)$/;

/** Name, code and frames. Not the message: drivers and fetch clients put addresses, passwords and bodies into theirs. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return `a thrown ${typeof error}`;
  const code = (error as { code?: unknown }).code;
  const frames = (error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  const head = [
    error.name,
    ...(typeof code === 'string' && /^\w{1,60}$/.test(code) ? [code] : []),
    ...(CODE_MISTAKE.test(error.message) ? [`(${error.message})`] : []),
  ];
  return [head.join(' '), ...frames].join('\n');
}
