/** Only JSON bodies, whichever adapter parsed them. */
import type { HttpRequestLike } from '../access/actor-resolver.port.js';
import { httpProblem } from '../answer/http-problem.mapper.js';

/**
 * Refuses other media types even where the host parses them: a form that another site submits with the user's cookies is no request of the user's.
 * A request without a body passes.
 * @throws HttpProblem 415
 */
export function requireJson({ headers }: HttpRequestLike): void {
  const contentType = headers['content-type'];
  const mediaType = String(contentType ?? '')
    .split(';', 1)[0]
    ?.trim()
    .toLowerCase();
  if (contentType === undefined ? !hasBody(headers) : /^application\/(?:[\w.-]+\+)?json$/.test(mediaType ?? '')) return;
  throw httpProblem(415, 'UNSUPPORTED_MEDIA_TYPE', 'Send the body as application/json.');
}

function hasBody(headers: HttpRequestLike['headers']): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}
