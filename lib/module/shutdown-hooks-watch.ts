/**
 * Warns when a SIGTERM would kill this process in the middle of runs. Nest does not tell whether `enableShutdownHooks()` was called, but it listens to
 * the signal when it was; so does a host that closes the application by itself. Asked shortly after boot, because an application context is given to the host
 * only after its bootstrap hooks.
 */
import type { Clock } from '../contracts/ports/system.port.js';

export const WATCH_AFTER_MS = 1_000;

/** @returns cancels it */
export function watchShutdownHooks(clock: Clock, warn: (message: string) => void): () => void {
  return clock.after(WATCH_AFTER_MS, () => {
    // Windows has no SIGTERM.
    if (process.platform === 'win32' || process.listenerCount('SIGTERM') > 0) return;
    warn(
      'Nobody listens to SIGTERM: runs will not be handed over when this process is stopped, others take them over when their lease has expired. Call app.enableShutdownHooks() after creating the application.',
    );
  });
}
