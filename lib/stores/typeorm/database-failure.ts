import { AgentRunsError } from '../../errors/agent-runs.error.js';
import { PayloadTooLargeError } from '../../errors/request.errors.js';
import { BrokenStoreError, StoreConflictError, StoreUnavailableError } from '../../errors/store.errors.js';

/**
 * - `conflict`: concurrent transactions got in each other's way; the same transaction may pass when repeated
 * - `unavailable`: the database cannot do it now
 * - `too_large`: it will never take so much at once, and takes less as before
 * - `out_of_reach`: not on this connection, for which the tables are not there or whose user or role may not use them; another one may
 * - `broken`: it will never do it: a column that is missing, a constraint nobody should hit, a damaged file
 */
export type FailureVerdict = 'conflict' | 'unavailable' | 'too_large' | 'out_of_reach' | 'broken';

/**
 * What went wrong in the database, told by its code alone. Drivers' own messages and errors carry statements and
 * values, so they are neither passed on nor kept as a cause. Inside the store a failure is judged by its verdict;
 * callers get one of the store errors.
 */
export class DatabaseFailure extends Error {
  override readonly name = 'DatabaseFailure';

  constructor(
    readonly verdict: FailureVerdict,
    /** The driver's code, e.g. `SQLITE_FULL` or `ER_LOCK_DEADLOCK`. */
    readonly databaseCode: string,
    /** The connection is gone, and with it the answer. */
    readonly isConnectionLost = false,
  ) {
    super(`The database answered ${databaseCode}.`);
  }

  /** For callers. @param doing what was tried, in words, e.g. `commit` */
  toStoreError(doing: string): Error {
    const details = { databaseCode: this.databaseCode };
    switch (this.verdict) {
      case 'conflict':
        return new StoreConflictError(
          `The database could not ${doing}: ${this.databaseCode}. Other transactions were in the way; try again.`,
          { details },
        );
      case 'unavailable':
        return new StoreUnavailableError(`The database could not ${doing} now: ${this.databaseCode}.`, { details });
      case 'too_large':
        return new PayloadTooLargeError(
          `The database could not ${doing}: ${this.databaseCode}. It does not take so much in one statement; nothing of it was written.`,
          { details },
        );
      case 'out_of_reach':
        return new StoreUnavailableError(
          `The database refused to ${doing}: ${this.databaseCode}. The agent run tables or their schema are not there, or the user or role of the connection may not use them. Look at its privileges.`,
          { details },
        );
      case 'broken':
        return new BrokenStoreError(
          `The database refused to ${doing}: ${this.databaseCode}. Its tables are not as this package made them${this.databaseCode.startsWith('SQLITE_') ? ', or its file is damaged' : ''}.`,
          { details },
        );
    }
  }
}

/** Failures become store errors; a decider's refusals and our own errors pass as they are. */
export function forCaller(error: unknown, doing: string): unknown {
  return error instanceof DatabaseFailure ? error.toStoreError(doing) : error;
}

/**
 * Somebody else committed between a program's reads and its writes. Never leaves the store: the transaction is rolled back and the program runs again; if it
 * keeps losing, the caller is told with a StoreConflictError.
 */
export class LostRaceError extends Error {
  override readonly name = 'LostRaceError';
}

/**
 * The database refused to commit what a transactional tool wrote, e.g. for a deferred constraint of the host's tables. Nothing is committed, and running the
 * tool again would end the same way: it is an error of the tool.
 */
export class ToolCommitRefusedError extends Error {
  override readonly name = 'ToolCommitRefusedError';

  constructor(readonly databaseCode: string) {
    super(`The database refused to commit what the tool wrote: ${databaseCode}.`);
  }
}

/** A batch holds part of the writes of a program that failed; it must be rolled back, and each program runs by itself. */
export class BatchAborted extends Error {
  override readonly name = 'BatchAborted';
}

/** Where failures of batches go; what was in the batch is executed individually. */
export interface BatchFailures {
  report(error: unknown): void;
}

/** Counts how often concurrent transactions got in each other's way, for operators: each of these was repeated, and cost its caller time. */
export class ConflictCounter implements BatchFailures {
  private readonly counts = new Map<string, number>();
  private readonly reported = new Set<string>();

  /** @param warn is told once of each kind of batch that the database refuses */
  constructor(private readonly warn = warnOfProcess) {}

  /** Counts an error that is a conflict; any other is none of its business. */
  count(error: unknown): void {
    if (error instanceof LostRaceError) this.add('LOST_RACE');
    else if (error instanceof DatabaseFailure && error.verdict === 'conflict') this.add(error.databaseCode);
  }

  /** Counts a batch that failed. Conflicts and lost connections pass; what else it was is told, once. */
  report(error: unknown): void {
    this.add('BATCH_FAILED');
    if (error instanceof BatchAborted || AgentRunsError.is(error)) return;
    if (error instanceof DatabaseFailure && (error.verdict === 'conflict' || error.verdict === 'unavailable')) return;
    const code =
      error instanceof DatabaseFailure ? error.databaseCode : error instanceof Error ? error.name : 'unknown';
    if (this.reported.has(code)) return;
    this.reported.add(code);
    this.warn(
      `The database refused a statement for several runs: ${code}. They are written one by one, which is slower. Further failures with this code are only counted, as BATCH_FAILED.`,
    );
  }

  read(): Record<string, number> {
    return Object.fromEntries(this.counts);
  }

  private add(code: string): void {
    this.counts.set(code, (this.counts.get(code) ?? 0) + 1);
  }
}

function warnOfProcess(message: string): void {
  process.emitWarning(message, 'AgentRunsWarning');
}
