import type { HttpServer } from '@nestjs/common';
import { HttpException } from '@nestjs/common';
import type { HttpProblemBody } from '../results/http-problem.js';

type ErrorHandler = (error: unknown, request: unknown, response: unknown, next: unknown) => unknown;

const ANSWERS: Readonly<Record<number, Omit<HttpProblemBody, 'statusCode'>>> = {
  400: {
    code: 'INVALID_REQUEST',
    message: 'The body is no valid JSON.',
    details: { fields: [{ field: '(body)', problem: 'must be valid JSON' }] },
  },
  413: { code: 'PAYLOAD_TOO_LARGE', message: 'The body is larger than this server accepts.' },
  415: { code: 'UNSUPPORTED_MEDIA_TYPE', message: 'Send the body as application/json in UTF-8.' },
};

/**
 * Answers bodies that are no JSON, or too large, as problems of ours. They fail in the adapter's parser, before any
 * controller: no filter of ours is reached, and a global one would also see the host's own errors. So the adapter's
 * error handler is wrapped for exactly these failures on exactly our routes; everything else goes on to Nest.
 * @param path the path of the registration, below the host's prefix and version
 */
export function answerUnreadableBodies(adapter: HttpServer, path: string): void {
  const original = adapter.setErrorHandler?.bind(adapter);
  if (!original) return;
  const ours = routePattern(path);
  adapter.setErrorHandler = (handler: ErrorHandler, prefix?: string) =>
    original((error: unknown, request: unknown, response: unknown, next: unknown) => {
      const statusCode = parserStatus(error);
      const answer = statusCode === undefined ? undefined : ANSWERS[statusCode];
      const url = String(adapter.getRequestUrl?.(request) ?? '').replace(/[?#].*$/s, '');
      if (!answer || !ours.test(url)) return handler(error, request, response, next);
      return adapter.reply(response, { statusCode, ...answer }, statusCode);
    }, prefix);
}

/** Routes with a body are all below `runs`. A `:parameter` of the path stands for one segment. */
function routePattern(path: string): RegExp {
  const segments = path
    .split('/')
    .filter(Boolean)
    .map((segment) => (segment.startsWith(':') ? '[^/]+' : segment.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')));
  return new RegExp(`(?:^|/)${segments.join('/')}/runs(?:/|$)`, 'i');
}

/**
 * What body-parser's and Fastify's errors have in common: a 4xx status on an error that nobody threw as an
 * `HttpException`.
 */
function parserStatus(error: unknown): number | undefined {
  if (!(error instanceof Error) || error instanceof HttpException) return undefined;
  const { statusCode, status, type, code } = error as {
    statusCode?: unknown;
    status?: unknown;
    type?: unknown;
    code?: unknown;
  };
  const isParser =
    error instanceof SyntaxError ||
    (typeof type === 'string' && /^(?:entity|encoding|charset|request)\./.test(type)) ||
    (typeof code === 'string' && code.startsWith('FST_ERR_CTP_'));
  const found = statusCode ?? status;
  return isParser && typeof found === 'number' ? found : undefined;
}
