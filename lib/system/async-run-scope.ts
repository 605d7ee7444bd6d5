import { AsyncLocalStorage } from 'node:async_hooks';
import type { RunScope, ScopedCall } from '../contracts/ports/system.port.js';

/** One for the process: on Node 20 each storage that was ever entered makes every promise of the process a little slower, for good. */
const calls = new AsyncLocalStorage<ScopedCall | null>();

/** Follows the call through promises, timers and callbacks. */
export class AsyncRunScope implements RunScope {
  enter<T>(call: ScopedCall | null, body: () => T): T {
    return calls.run(call, body);
  }

  current(): ScopedCall | null {
    return calls.getStore() ?? null;
  }
}
