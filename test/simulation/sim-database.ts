// The simulated server: tables, row locks that are waited for, transactions that end with their connection, and a clock of its own. What a transaction writes
// is seen by others when it has committed (READ COMMITTED); with one writer every lock is the same lock, as in SQLite.
import { type TablesCommit, InMemoryTables } from '../../lib/stores/in-memory/tables.js';
import type { RunRecord } from '../../lib/contracts/run.js';
import { EPOCH, type SimProcess } from './sim-process.js';
import type { World } from './world.js';

export type Isolation = 'read committed' | 'single writer';

/** How long a lock is waited for. */
const LOCK_WAIT_MS = 4_000;

/** What a database refuses that may pass by itself; the store repeats it or says that it is unavailable. */
export class PassingFailure extends Error {}

/** A transaction of one connection. */
export class Transaction {
  isOver = false;
  readonly locks = new Set<string>();
  waitsFor: string | null = null;
  /** What it answered, once it has committed a journal row. */
  landed: { value: unknown } | null = null;

  constructor(
    readonly process: SimProcess,
    readonly what: string,
  ) {}
}

interface Waiter {
  transaction: Transaction;
  granted: (failure: PassingFailure | null) => void;
}

interface Lock {
  holder: Transaction;
  waiters: Waiter[];
}

export interface Commit {
  by: SimProcess;
  what: string;
  commit: TablesCommit;
  /** The runs it changed, as they were. */
  before: ReadonlyMap<string, RunRecord | undefined>;
}

/** A row that a tool wrote in its transaction. */
export interface ToolRow {
  operationId: string;
  attempt: number;
}

export class SimDatabase {
  readonly tables = new InMemoryTables();
  /** Of transactional tools: committed. */
  readonly toolRows: ToolRow[] = [];
  onCommit: (commit: Commit) => void = () => undefined;
  /** Until when it refuses everything. */
  downUntil = -1;
  private readonly locks = new Map<string, Lock>();
  private readonly open = new Set<Transaction>();

  constructor(
    readonly world: World,
    readonly isolation: Isolation,
  ) {}

  /** Its own clock judges ownership (I12). */
  now(): number {
    return EPOCH + Math.floor(this.world.time);
  }

  get isDown(): boolean {
    return this.world.time < this.downUntil;
  }

  get openTransactions(): number {
    return this.open.size;
  }

  begin(process: SimProcess, what: string): Transaction {
    const transaction = new Transaction(process, what);
    this.open.add(transaction);
    return transaction;
  }

  /** Ends a transaction and gives its locks to those who wait for them. Idempotent. */
  end(transaction: Transaction): void {
    if (transaction.isOver) return;
    transaction.isOver = true;
    this.open.delete(transaction);
    if (transaction.waitsFor !== null) {
      const lock = this.locks.get(transaction.waitsFor);
      if (lock) lock.waiters = lock.waiters.filter((waiter) => waiter.transaction !== transaction);
    }
    for (const key of transaction.locks) this.pass(key);
  }

  /** The server notices that a client is gone. */
  closeConnectionsOf(process: SimProcess): void {
    for (const transaction of [...this.open]) if (transaction.process === process) this.end(transaction);
  }

  /** @param granted called at once, or when the lock is free, with the failure in which the wait ended */
  lock(transaction: Transaction, row: string, granted: (failure: PassingFailure | null) => void): void {
    const key = this.keyOf(row);
    if (transaction.isOver) return granted(new PassingFailure('the connection is closed'));
    const lock = this.locks.get(key);
    if (!lock) {
      this.locks.set(key, { holder: transaction, waiters: [] });
      transaction.locks.add(key);
      return granted(null);
    }
    if (lock.holder === transaction) return granted(null);
    if (this.closesCircle(transaction, lock)) {
      this.world.note(`db: ${transaction.process.name} is the victim of a deadlock at ${row}`);
      return granted(new PassingFailure('deadlock'));
    }
    transaction.waitsFor = key;
    const waiter: Waiter = { transaction, granted };
    lock.waiters.push(waiter);
    this.world.at(this.world.time + LOCK_WAIT_MS, false, () => {
      const place = lock.waiters.indexOf(waiter);
      if (place < 0) return;
      lock.waiters.splice(place, 1);
      transaction.waitsFor = null;
      granted(new PassingFailure('a lock was not free in time'));
    });
  }

  isLocked(row: string, transaction: Transaction): boolean {
    const lock = this.locks.get(this.keyOf(row));
    return lock !== undefined && lock.holder !== transaction;
  }

  /** @param before the runs that were changed, as they were */
  committed(by: SimProcess, what: string, commit: TablesCommit | null, before: Commit['before']): void {
    if (commit) this.onCommit({ by, what, commit, before });
  }

  private keyOf(row: string): string {
    return this.isolation === 'single writer' ? 'the database' : row;
  }

  private pass(key: string): void {
    const lock = this.locks.get(key);
    const next = lock?.waiters.shift();
    if (!lock || !next) {
      this.locks.delete(key);
      return;
    }
    lock.holder = next.transaction;
    next.transaction.locks.add(key);
    next.transaction.waitsFor = null;
    next.granted(null);
  }

  private closesCircle(transaction: Transaction, lock: Lock): boolean {
    for (let holder: Transaction | undefined = lock.holder; holder;) {
      if (holder === transaction) return true;
      holder = holder.waitsFor === null ? undefined : this.locks.get(holder.waitsFor)?.holder;
    }
    return false;
  }
}
