import { setTimeout as sleep } from 'node:timers/promises';
import type { RunStore } from 'nestjs-agent-runs';

/** A fresh, empty, opened store, and what a case may do to it. */
export interface StoreUnderTest {
  readonly store: RunStore;
  /**
   * Closes the store and opens another instance over the same data, as the next process would. A store that is not durable answers with the same one.
   */
  reopen(): Promise<RunStore>;
  /** Opens one more instance over the same data, as another living process would. Required for stores with `traits.shared`, unused for others. */
  second?(): Promise<RunStore>;
  /** Moves the store's clock on, where the test owns it. Without it cases wait in real time. */
  advance?(ms: number): void | Promise<void>;
  /** Closes every instance and removes the data. */
  dispose(): Promise<void>;
}

export type StoreFactory = () => Promise<StoreUnderTest>;

/**
 * The store contract as data: what every `RunStore` promises, one case per promise, for any test runner. A case opens a fresh, empty store through the
 * factory it is given, checks with `node:assert`, and always disposes of what it opened. Nothing in a case depends on a clock of the test's own: leases
 * end because time passes at the store, really or by {@link StoreUnderTest.advance}.
 */
export interface StoreCase {
  /** The requirement it checks. */
  readonly id: string;
  /** A sentence about behaviour. */
  readonly title: string;
  /** Resolves when the store keeps the promise, rejects with an AssertionError or the store's own error when it does not. */
  run(open: StoreFactory): Promise<void>;
}

/** What the check of a case works with. */
export interface StoreSubject {
  readonly store: RunStore;
  reopen(): Promise<RunStore>;
  second(): Promise<RunStore>;
  /** Lets so much time pass at the store. */
  wait(ms: number): Promise<void>;
}

export function storeCase(id: string, title: string, check: (subject: StoreSubject) => Promise<void>): StoreCase {
  return {
    id,
    title,
    async run(open) {
      const opened = await open();
      try {
        await check({
          store: opened.store,
          reopen: () => opened.reopen(),
          second: () => {
            if (opened.second) return opened.second();
            throw new Error('This case needs `second` of the store factory: another instance over the same data.');
          },
          wait: async (ms) => {
            if (opened.advance) await opened.advance(ms);
            else await sleep(ms);
          },
        });
      } finally {
        await opened.dispose();
      }
    },
  };
}
