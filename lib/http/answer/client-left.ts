import type { EventEmitter } from 'node:events';
import type { HttpRequestLike } from '../access/actor-resolver.port.js';

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
