import type { ToolTransaction } from '../../contracts/ports/run-store.port.js';
import type { PreparedAppend } from './journal-rows.js';
import type { Dialect } from './dialect.js';
import type { Program } from './program.js';

/** Makes a program; called again for each repetition. */
export type ProgramMaker<T> = () => Program<T>;

/** What is done in a transaction of the host. */
export interface JoinedWork<T> {
  /** @param races how often it was lost before, in this transaction */
  program(races: number): Program<T>;
  /** After a lost race or a conflict, outside of that transaction, whose snapshot may be older than what won: the outcome by what is there, or null. */
  meanwhile: ProgramMaker<T | null>;
}

/** A transaction of our own; repeated where concurrent ones were in the way. */
export interface OwnTransaction<T> {
  /** What it is, in words, for errors. */
  readonly doing: string;
  readonly program: ProgramMaker<T>;
  /**
   * Whether what gave this value was committed; asked where the answer to COMMIT was lost, after all that could still commit has ended. Without it the program
   * runs again, which must then be right.
   */
  readonly wasCommitted?: (value: T) => Program<boolean>;
  /**
   * Where it may share a commit with others: names of what it alone may touch in it, the id of its run first. Absent: it locks what this cannot tell.
   */
  readonly conflictKeys?: readonly string[] | undefined;
}

/**
 * One kind of database behind the store: how programs are run as transactions there. The siblings differ in this and in their dialect, and in nothing else.
 */
export interface RunDatabase {
  readonly dialect: Dialect;
  /** False where the tables are in the memory of this process. */
  readonly isDurable: boolean;
  /** Bytes of JSON text that fit into each statement beside what else it holds, known once it was checked. */
  readonly maxCommitBytes: number;
  /** Checks that the connection is usable as it is configured. */
  open(): Promise<void>;
  /** Lets running work end, for a while. The connection stays the host's. */
  close(): Promise<void>;
  /**
   * Reads. The statements of a program have no snapshot in common: it must be right without one.
   * @param doing what it is, in words, for errors
   */
  read<T>(doing: string, program: ProgramMaker<T>): Promise<T>;
  write<T>(transaction: OwnTransaction<T>): Promise<T>;
  append(append: PreparedAppend): Promise<void>;
  /**
   * Inside the host's open transaction, at its isolation level, and never repeated as a whole; a lost race is, from a savepoint. Where the program fails, what
   * it wrote is taken back and the transaction stays usable, unless the database has ended it.
   */
  join<T>(doing: string, transaction: unknown, work: JoinedWork<T>): Promise<T>;
  /** Calls back after the outermost commit of the host's transaction, if the run is there then; never after its rollback. */
  afterHostCommit(transaction: unknown, runId: string, callback: () => void): void;
  /** Runs a program alone among all processes that change the schema. */
  changeSchema<T>(program: ProgramMaker<T>): Promise<T>;
  openToolTransaction(): ToolTransaction;
}
