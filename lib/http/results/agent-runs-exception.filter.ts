import { type ArgumentsHost, Catch, type ExceptionFilter, Inject, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { AgentRunsError } from '../../errors/agent-runs.error.js';
import { HttpProblem, loggedProblem } from './http-problem.js';

/** Nest asks `instanceof`; errors of another copy of the package count too. */
abstract class AnyAgentRunsError {
  static [Symbol.hasInstance](value: unknown): boolean {
    return value instanceof HttpProblem || AgentRunsError.is(value);
  }
}

/**
 * Answers errors of this package with their HTTP status and `{ statusCode, code, message, details? }`: for your own
 * controllers that call `RunService`. Bind it with `@UseFilters(AgentRunsExceptionFilter)`, or for all with `{ provide:
 * APP_FILTER, useClass: AgentRunsExceptionFilter }`. Store trouble is a 503 and what is not meant for a caller a 500,
 * both without its words; the latter is logged. Other errors, and other contexts than HTTP, are left alone.
 */
@Catch(AnyAgentRunsError)
export class AgentRunsExceptionFilter implements ExceptionFilter {
  private readonly logger = new Logger(AgentRunsExceptionFilter.name);

  constructor(@Inject(HttpAdapterHost) private readonly adapterHost: HttpAdapterHost) {}

  catch(error: Error, host: ArgumentsHost): void {
    if (host.getType() !== 'http') throw error;
    const { httpAdapter } = this.adapterHost;
    const response: unknown = host.switchToHttp().getResponse();
    if (httpAdapter.isHeadersSent(response)) {
      httpAdapter.end(response);
      return;
    }
    const problem = loggedProblem(error, this.logger, 'a controller') as HttpProblem;
    for (const [name, value] of Object.entries(problem.headers)) httpAdapter.setHeader(response, name, value);
    httpAdapter.reply(response, problem.body, problem.body.statusCode);
  }
}
