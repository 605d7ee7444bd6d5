import type { EventEmitter } from 'node:events';
import type { HttpServer } from '@nestjs/common';
import { MAX_IDENTIFIER } from '../../contracts/text.js';
import type { HttpRequestLike } from '../access/actor-resolver.port.js';
import { httpProblem } from '../results/http-problem.js';

/**
 * Refuses media types other than JSON even where the host parses them: a form that another site submits with the user's
 * cookies is no request of the user's. A request without a body passes.
 * @throws HttpProblem 415
 */
export function requireJson({ headers }: HttpRequestLike): void {
  const contentType = headers['content-type'];
  const [mediaType = ''] = String(contentType ?? '').split(';', 1);
  const length = headers['content-length'];
  const hasBody = headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
  const isJson = /^application\/(?:[\w.-]+\+)?json$/i.test(mediaType.trim());
  if (contentType === undefined ? !hasBody : isJson) return;
  throw httpProblem(415, 'UNSUPPORTED_MEDIA_TYPE', 'Send the body as application/json.');
}

/** What routes answer with, by its media type. */
const FORMATS = { json: 'application/json', events: 'text/event-stream' } as const;
type Format = keyof typeof FORMATS;

/**
 * The format of an answer by `Accept` (RFC 9110 section 12.5.1): the most specific range that fits decides; of equals
 * the one that is offered first; without the header any will do.
 * @returns null where no format is acceptable
 */
export function negotiateFormat<F extends Format>(
  accept: string | string[] | undefined,
  offered: readonly [F, ...F[]],
): F | null {
  const given = [accept ?? ''].flat().join(',');
  if (given.trim() === '') return offered[0];
  const weights = new Map<string, number>();
  for (const range of given.split(',')) {
    const [mediaType = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    weights.set(mediaType, quality === undefined ? 1 : Number(quality) || 0);
  }
  const weightOf = (format: F): number => {
    const mediaType = FORMATS[format];
    return weights.get(mediaType) ?? weights.get(mediaType.replace(/\/.*/, '/*')) ?? weights.get('*/*') ?? 0;
  };
  const best = Math.max(...offered.map(weightOf));
  return best > 0 ? (offered.find((format) => weightOf(format) === best) ?? null) : null;
}

/** @throws HttpProblem 406 */
export function requireFormat<F extends Format>({ headers }: HttpRequestLike, ...offered: [F, ...F[]]): F {
  const format = negotiateFormat(headers.accept, offered);
  if (format !== null) return format;
  const accepted = offered.map((one) => FORMATS[one]).join(' or ');
  throw httpProblem(406, 'NOT_ACCEPTABLE', `Ask for ${accepted}, e.g. with Accept: ${FORMATS[offered[0]]}.`);
}

interface Connected {
  /** HTTP/2: the request's own stream; the socket is shared by all of them. */
  stream?: EventEmitter;
  socket?: EventEmitter & { destroyed?: boolean };
}

/**
 * A signal that is aborted when the client of a request goes away.
 * @returns with what ends the watch
 */
export function clientLeft(request: HttpRequestLike): { signal: AbortSignal; stop: () => void } {
  // Fastify wraps the request of the server.
  const { stream, socket } = (request['raw'] ?? request) as Connected;
  const connection = stream ?? socket;
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  connection?.once('close', abort);
  if (socket?.destroyed === true) abort();
  return { signal: controller.signal, stop: () => void connection?.off('close', abort) };
}

/** What Fastify routes unless it is told otherwise. */
const FASTIFY_DEFAULT = 100;

interface FastifyConfig {
  maxParamLength?: number;
  routerOptions?: { maxParamLength?: number };
}

/**
 * Characters of the longest id with which a run or session can be found again: Fastify answers longer path parameters
 * with 414 before any route.
 */
export function longestPathId(adapter: HttpServer): number {
  const { initialConfig } = (adapter.getInstance() as { initialConfig?: FastifyConfig } | undefined) ?? {};
  if (adapter.getType() !== 'fastify' || initialConfig === undefined) return MAX_IDENTIFIER;
  // Fastify fills the one that is not given with its default.
  const given = [initialConfig.routerOptions?.maxParamLength, initialConfig.maxParamLength].find(
    (length) => length && length !== FASTIFY_DEFAULT,
  );
  return Math.min(given ?? FASTIFY_DEFAULT, MAX_IDENTIFIER);
}
