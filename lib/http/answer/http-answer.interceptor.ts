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
import { problemFor } from './http-problem.mapper.js';

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
      catchError((error: unknown) => throwError(() => problemFor(error, this.logger, context.getHandler().name))),
    );
  }
}
