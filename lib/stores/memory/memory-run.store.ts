/**
 * The store for tests and trials: everything in this process, gone with it. It keeps every promise of the port except durability; what it has said once
 * stays readable after `close`, because nothing else could bring it back.
 */
import type { Written } from '../image/image-change.js';
import { ImageRunStore } from '../image/image-run.store.js';

export interface MemoryRunStoreOptions {
  /** The store's clock, epoch ms. Default: the process clock. */
  clock?: () => number;
}

export class MemoryRunStore extends ImageRunStore {
  constructor(options: MemoryRunStoreOptions = {}) {
    super({ name: 'memory', durable: false, shared: false, transactions: false }, options.clock ?? (() => Date.now()));
  }

  open(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  // Async, so that a refusal is a rejection and never a throw into the caller's turn.
  protected async write<T>(work: () => Written<T>): Promise<T> {
    return work().value;
  }

  protected async read<T>(work: () => T): Promise<T> {
    return work();
  }
}
