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
import { loggedProblem } from './http-problem.js';

/** The result of a route whose status or headers depend on what happened. */
export class HttpResult<T> {
  constructor(
    readonly status: number,
    readonly body: T,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {}
}

/**
 * Renders {@link HttpResult}s and turns what a route threw into a problem. Innermost: the host's interceptors see plain
 * values.
 */
@Injectable()
export class HttpResultInterceptor implements NestInterceptor {
  private readonly logger = new Logger(HttpResultInterceptor.name);

  constructor(@Inject(HttpAdapterHost) private readonly adapterHost: HttpAdapterHost) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(
      map((value: unknown) => {
        if (!(value instanceof HttpResult)) return value;
        const response: unknown = context.switchToHttp().getResponse();
        const { httpAdapter } = this.adapterHost;
        httpAdapter.status(response, value.status);
        for (const [name, text] of Object.entries(value.headers)) httpAdapter.setHeader(response, name, text);
        return value.body as unknown;
      }),
      catchError((error: unknown) => throwError(() => loggedProblem(error, this.logger, context.getHandler().name))),
    );
  }
}
