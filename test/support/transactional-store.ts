// A store with tool transactions, over any other: what a tool writes through `context.manager` is there when its transaction commits, and only then.
import type { AppendRequest, StoreTraits, ToolTransaction } from '../../lib/contracts/ports/run-store.port.js';
import { StoreConflictError, StoreUnavailableError } from '../../lib/errors/store.errors.js';
import { FailingStore } from './failing-store.js';

export interface RowWriter {
  insert(row: string): void;
}

/** What happens to a commit. `lost`: it lands, its answer does not. `unreachable`: neither. */
export type CommitFault = 'conflict' | 'lost' | 'unreachable' | 'refused';

/** What the database throws into a method whose transaction it gave up. */
export class DatabaseConflict extends Error {}

export class TransactionalStore extends FailingStore {
  /** Committed rows. */
  readonly rows: string[] = [];
  readonly commitFaults: CommitFault[] = [];
  beginFault: (() => Error) | null = null;
  /** So many rollbacks find the database gone. */
  rollbackFaults = 0;
  /** Awaited between the decision to commit and the commit. */
  beforeCommit: (() => Promise<void>) | null = null;
  opened = 0;
  rolledBack = 0;

  override get traits(): StoreTraits {
    return { ...this.inner.traits, transactions: true };
  }

  override openToolTransaction(): ToolTransaction {
    const written: string[] = [];
    let over = false;
    this.opened += 1;
    return {
      begin: async () => {
        if (this.beginFault) throw this.beginFault();
        return {
          insert: (row) => {
            if (over) throw new Error('the manager was used after its transaction had ended');
            written.push(row);
          },
        } satisfies RowWriter;
      },
      commit: async (request) => {
        if (over) throw new Error('the transaction is over');
        await this.beforeCommit?.();
        await this.commit(request, written);
        over = true;
      },
      rollback: async () => {
        if (!over) this.rolledBack += 1;
        over = true;
        if (this.rollbackFaults > 0) {
          this.rollbackFaults -= 1;
          throw new StoreUnavailableError('the database went away under the method');
        }
      },
      isConflict: (error) => error instanceof DatabaseConflict,
    };
  }

  private async commit(request: AppendRequest, written: readonly string[]): Promise<void> {
    const fault = this.commitFaults.shift();
    if (fault === 'conflict') throw new StoreConflictError('deadlock');
    if (fault === 'unreachable') throw new StoreUnavailableError('the database went away before the commit');
    if (fault === 'refused') throw new Error('a deferred constraint was violated');
    await this.append(request);
    this.rows.push(...written);
    if (fault === 'lost') throw new StoreUnavailableError('the answer to COMMIT was lost');
  }
}
