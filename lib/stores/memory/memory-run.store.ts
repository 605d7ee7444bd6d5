import type { ToolTransaction } from '../../contracts/ports/run-store.port.js';
import type { Written } from '../in-memory/tables.js';
import { InMemoryStore } from '../in-memory/in-memory-run.store.js';

/** What {@link MemoryRunStore} takes. */
export interface MemoryRunStoreOptions {
  /** The store's clock, epoch ms. Default: the process clock. */
  clock?: () => number;
  /**
   * What `transactional` tools get as `context.manager`: a stand-in of the test's own. Without it such tools are refused at boot. Nothing is rolled back: the
   * stand-in sees the calls of executions that failed, too.
   */
  manager?: unknown;
}

/**
 * The store for tests and trials: everything in this process, gone with it. It keeps every promise of the port except durability; what it has said once
 * stays readable after `close`, because nothing else could bring it back.
 */
export class MemoryRunStore extends InMemoryStore {
  constructor(private readonly options: MemoryRunStoreOptions = {}) {
    const transactions = options.manager !== undefined;
    super({ name: 'memory', durable: false, shared: false, transactions }, options.clock ?? (() => Date.now()));
  }

  override openToolTransaction(): ToolTransaction {
    const { manager } = this.options;
    if (manager === undefined) return super.openToolTransaction();
    return {
      begin: async () => manager,
      commit: (append) => this.append(append),
      rollback: async () => undefined,
      isConflict: () => false,
    };
  }

  open(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** @internal Async, so that a refusal is a rejection and never a throw into the caller's turn. */
  protected async write<T>(work: () => Written<T>): Promise<T> {
    return work().value;
  }

  /** @internal */
  protected async read<T>(work: () => T): Promise<T> {
    return work();
  }
}
