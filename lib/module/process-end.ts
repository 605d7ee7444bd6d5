import { constants } from 'node:os';
import type { HttpAdapterHost } from '@nestjs/core';
import { LONGEST_TIMER_MS } from '../contracts/duration.js';

/**
 * Keeps the process alive: nothing else of a worker does, not even its connections to a database that has gone.
 * @returns lets go of it
 */
export function keepProcessAlive(): () => void {
  const handle = setInterval(() => undefined, LONGEST_TIMER_MS);
  return () => clearInterval(handle);
}

/** Closes the port, so that the next process can have it while this one drains. Connections that are open stay so, and are answered. */
export function stopListening({ httpAdapter }: Partial<Pick<HttpAdapterHost, 'httpAdapter'>>): void {
  const server = httpAdapter?.getHttpServer?.() as { listening?: boolean; close?: () => void } | undefined;
  if (server?.listening === true) server.close?.();
}

/**
 * Nest ends the process by sending itself the signal again, which the kernel ignores in a container's first process, where nobody listens to it. A tool that
 * ignores its own signal would keep that process until it is killed.
 */
export function endByRepeatedSignal(signal: string | undefined): void {
  const number = constants.signals[signal as NodeJS.Signals];
  if (process.pid !== 1 || number === undefined) return;
  process.once(signal as NodeJS.Signals, () => process.exit(128 + number));
}
