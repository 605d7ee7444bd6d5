import { Readable } from 'node:stream';
import { StreamableFile } from '@nestjs/common';
import type { LifecycleRunEvent, RunEvent, StreamedEvent } from '../../contracts/run-view.js';
import { HttpResult } from './http-result.interceptor.js';

const HEARTBEAT_MS = 15_000;

/** So that nothing on the way collects, compresses or keeps them. */
const HEADERS = { 'Cache-Control': 'no-cache, no-transform', 'X-Accel-Buffering': 'no' };

export interface EventStreamOptions {
  /** After this time, in ms, the client has to connect again, and is authorised again. */
  maxAgeMs: number;
  headers?: Readonly<Record<string, string>>;
}

/**
 * Server-sent events (WHATWG HTML, section 9.2). The response is a `Readable` that Nest pipes on every adapter, so events
 * are pulled as fast as the client reads them. A stream that fails or grows too old destroys its connection: only a
 * complete one ends, so that a client can tell "cut" from "over".
 * @param open opens the events; its signal is aborted when the client goes away
 */
export function eventStream(
  open: (signal: AbortSignal) => AsyncIterable<StreamedEvent<RunEvent | LifecycleRunEvent>>,
  { maxAgeMs, headers = {} }: EventStreamOptions,
): HttpResult<StreamableFile> {
  const left = new AbortController();
  const text = frames(open(left.signal));
  const body = new Readable({
    // One event at a time: what the client has not read yet is left in the store.
    highWaterMark: 1,
    read: () =>
      void text.next().then(
        ({ done, value }) => body.push(done ? null : value),
        (error: Error) => body.destroy(error),
      ),
    destroy: (error, done) => {
      clearTimeout(ends);
      left.abort();
      void text.return();
      done(error);
    },
  });
  const ends = setTimeout(() => body.destroy(new Error('The stream is too old.')), maxAgeMs).unref();
  const file = new StreamableFile(body, { type: 'text/event-stream' });
  file.setErrorLogger(() => undefined);
  file.setErrorHandler((_error, response) => (response as unknown as { destroy(): void }).destroy());
  return new HttpResult(200, file, { ...HEADERS, ...headers });
}

/** The text of the stream: an event each, and comments while there is none. */
async function* frames(
  events: AsyncIterable<StreamedEvent<RunEvent | LifecycleRunEvent>>,
): AsyncGenerator<string, void> {
  yield ': connected\n\n';
  const iterator = events[Symbol.asyncIterator]();
  try {
    for (let next = iterator.next(); ;) {
      const read = await orHeartbeat(next);
      if (read === null) {
        yield ': heartbeat\n\n';
        continue;
      }
      if (read.done) return;
      const { id, type, data } = read.value;
      // JSON text has no line breaks, and types are our own.
      yield `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
      next = iterator.next();
    }
  } finally {
    await iterator.return?.();
  }
}

/** @returns null when the next one takes longer than a heartbeat */
async function orHeartbeat<T>(next: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const beat = new Promise<null>((resolve) => (timer = setTimeout(() => resolve(null), HEARTBEAT_MS).unref()));
  try {
    return await Promise.race([next, beat]);
  } finally {
    clearTimeout(timer);
  }
}
