import { thrownProperty } from '../../engine/values/thrown-value.js';

/** Failures below HTTP that may pass: connection, name resolution, time-outs. Certificates are not among them. */
const CODES: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'ETIMEDOUT',
  'ESOCKETTIMEDOUT',
  'EPIPE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ERR_STREAM_PREMATURE_CLOSE',
  'UND_ERR_SOCKET',
  'UND_ERR_CLOSED',
  'UND_ERR_ABORTED',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  // Bun
  'ConnectionRefused',
  'ConnectionClosed',
  'FailedToOpenSocket',
]);

/** The code of the network failure behind an error, by its chain of causes; undefined when there is none. */
export function networkCode(error: unknown): string | undefined {
  let current = error;
  for (let depth = 0; depth < 8 && current !== undefined && current !== null; depth++) {
    const code = thrownProperty(current, 'code');
    if (typeof code === 'string' && CODES.has(code)) return code;
    const message = thrownProperty(current, 'message');
    const cause = thrownProperty(current, 'cause');
    // fetch tells some failures by its message alone.
    if (
      cause === undefined &&
      thrownProperty(current, 'name') === 'TypeError' &&
      /^(?:fetch failed|failed to fetch|terminated)$/i.test(String(message))
    ) {
      return 'fetch failed';
    }
    current = cause;
  }
  return undefined;
}
