import { type ArgumentsHost, Catch, type ExceptionFilter, Inject } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { HttpProblem } from './http-problem.error.js';

/** Sends our own errors. Bound to our controllers, so a host's global filter neither sees nor reshapes them; the host's errors are not caught here. */
@Catch(HttpProblem)
export class HttpProblemFilter implements ExceptionFilter<HttpProblem> {
  constructor(@Inject(HttpAdapterHost) private readonly adapterHost: HttpAdapterHost) {}

  catch(problem: HttpProblem, host: ArgumentsHost): void {
    const { httpAdapter } = this.adapterHost;
    const response: unknown = host.switchToHttp().getResponse();
    if (httpAdapter.isHeadersSent(response)) {
      httpAdapter.end(response);
      return;
    }
    for (const [name, value] of Object.entries(problem.headers)) httpAdapter.setHeader(response, name, value);
    httpAdapter.reply(response, problem.body, problem.body.statusCode);
  }
}
