import { AsyncLocalStorage } from 'node:async_hooks';
import type { RunScope, ScopedCall } from '../contracts/ports/run-scope.port.js';

/** Follows the call through promises, timers and callbacks. */
export class AsyncRunScope implements RunScope {
  private readonly calls = new AsyncLocalStorage<ScopedCall | null>();

  enter<T>(call: ScopedCall | null, body: () => T): T {
    return this.calls.run(call, body);
  }

  current(): ScopedCall | null {
    return this.calls.getStore() ?? null;
  }
}
