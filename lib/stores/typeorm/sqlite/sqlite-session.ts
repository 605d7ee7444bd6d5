import type { DataSource } from 'typeorm';
import { StoreUnavailableError } from '../../../errors/store.errors.js';
import { DatabaseFailure, type FailureVerdict } from '../database-failure.js';
import type { Answer, Program, Row, SqlValue, Statement } from '../program.js';

/**
 * One connection's prepared statements, and programs run on it in one synchronous turn. Below TypeORM's logger: our values are never logged. Knows nothing of
 * queues; whoever begins a transaction here ends it before giving the turn back, tool transactions apart.
 */
const MAX_STATEMENTS = 500;
/** A pause between turns, in which a host may have set its busy timeout. */
const PAUSE_MS = 20;

export class SqliteSession {
  /** Statements run so far that may have changed something. */
  writes = 0;
  private hostTimeout = 0;
  private lastTurnAt = -Infinity;
  private readonly statements = new Map<string, SqliteStatement>();

  constructor(readonly handle: SqliteHandle) {}

  get inTransaction(): boolean {
    return this.handle.inTransaction;
  }

  /** Runs a program to its end. @throws DatabaseFailure, and whatever the program throws */
  run<T>(program: Program<T>): T {
    let step = program.next();
    while (!step.done) {
      let answer: Answer;
      try {
        answer = this.execute(step.value);
      } catch (error) {
        step = program.throw(error);
        continue;
      }
      step = program.next(answer);
    }
    return step.value;
  }

  execute({ sql, params, writes }: Statement): Answer {
    if (writes) return { rows: [], changes: this.change(sql, params) };
    try {
      // A list of our own: the addon makes its lists in the realm it was loaded in, which under Jest is not ours.
      return { rows: [...this.prepare(sql).all(params)], changes: 0 };
    } catch (error) {
      throw sqliteFailure(error);
    }
  }

  /** @returns rows matched */
  change(sql: string, params: readonly SqlValue[]): number {
    this.writes += 1;
    try {
      return this.prepare(sql).run(params).changes;
    } catch (error) {
      throw sqliteFailure(error);
    }
  }

  /** BEGIN, COMMIT, SAVEPOINT … */
  control(sql: string): void {
    try {
      this.prepare(sql).run([]);
    } catch (error) {
      throw sqliteFailure(error);
    }
  }

  /** Ends whatever transaction is open; SQLite may have rolled back by itself already. */
  rollback(): void {
    if (this.handle.open && this.handle.inTransaction) this.control('ROLLBACK');
  }

  /**
   * Runs a turn in which a lock that another process holds is an error at once, instead of the event loop standing still for the host's busy timeout. The
   * host's own statements keep their timeout, which is read again whenever there was a pause since our last turn: a host may set it at any time.
   */
  withoutWaiting<T>(turn: () => T): T {
    const now = performance.now();
    if (now - this.lastTurnAt > PAUSE_MS) this.hostTimeout = this.readBusyTimeout();
    this.lastTurnAt = now;
    const timeout = this.hostTimeout;
    if (timeout === 0) return turn();
    this.setBusyTimeout(0);
    try {
      return turn();
    } finally {
      if (this.handle.open) this.setBusyTimeout(timeout);
    }
  }

  private readBusyTimeout(): number {
    try {
      // Read by compiling it: the prepared form of a pragma answers what was true when it was prepared.
      return Number(this.handle.prepare('PRAGMA busy_timeout').all([])[0]?.['timeout'] ?? 0);
    } catch (error) {
      throw sqliteFailure(error);
    }
  }

  private setBusyTimeout(ms: number): void {
    try {
      this.handle.exec(`PRAGMA busy_timeout = ${ms}`);
    } catch (error) {
      throw sqliteFailure(error);
    }
  }

  private prepare(sql: string): SqliteStatement {
    let statement = this.statements.get(sql);
    if (statement === undefined) {
      statement = this.handle.prepare(sql).safeIntegers(false);
      if (this.statements.size >= MAX_STATEMENTS) {
        const oldest = this.statements.keys().next();
        if (!oldest.done) this.statements.delete(oldest.value);
      }
      this.statements.set(sql, statement);
    }
    return statement;
  }
}

/** Verdicts on what better-sqlite3 throws. https://www.sqlite.org/rescode.html */
export function sqliteFailure(error: unknown): DatabaseFailure {
  const code = codeOf(error);
  return new DatabaseFailure(verdictOn(code), code);
}

/** Whether an error that host code threw comes from SQLite; TypeORM's QueryFailedError carries the driver's code. */
export function isDriverError(error: unknown): boolean {
  const code = typeof error === 'object' && error !== null ? (error as { code?: unknown }).code : undefined;
  return typeof code === 'string' && code.startsWith('SQLITE_');
}

function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'unknown';
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (typeof code === 'string') return code;
  // better-sqlite3 throws TypeErrors of its own where the connection is closed, or busy with an iterator of the host's.
  if (typeof message === 'string' && message.includes('connection is busy')) return 'SQLITE_BUSY_ITERATOR';
  if (typeof message === 'string' && message.includes('connection is not open')) return 'SQLITE_NOT_OPEN';
  return error instanceof Error ? error.name : 'unknown';
}

function verdictOn(code: string): FailureVerdict {
  if (/^SQLITE_(BUSY|LOCKED)/.test(code)) return 'conflict';
  if (code === 'SQLITE_TOOBIG') return 'too_large';
  if (/^SQLITE_(FULL|IOERR|NOMEM|CANTOPEN|READONLY|INTERRUPT|PROTOCOL|PERM|NOT_OPEN)/.test(code)) return 'unavailable';
  return 'broken';
}

/**
 * The parts of a better-sqlite3 connection that are used here. The connection is the host's: it is looked up at every use, because a data source that was
 * closed and opened again has another one.
 */
export interface SqliteStatement {
  readonly reader: boolean;
  all(params: readonly SqlValue[]): Row[];
  run(params: readonly SqlValue[]): { changes: number };
  safeIntegers(on: boolean): this;
}

/** `Database` of better-sqlite3 12. */
export interface SqliteHandle {
  readonly open: boolean;
  /** Not in autocommit: a BEGIN or SAVEPOINT is open, whoever made it. */
  readonly inTransaction: boolean;
  prepare(sql: string): SqliteStatement;
  exec(sql: string): this;
}

/** @throws StoreUnavailableError while the data source is not connected */
export function handleOf(dataSource: DataSource): SqliteHandle {
  const { databaseConnection } = dataSource.driver as unknown as { databaseConnection?: SqliteHandle };
  if (!dataSource.isInitialized || !databaseConnection?.open) {
    throw new StoreUnavailableError(
      'The SQLite connection is not open. Initialise the data source before the store, and close it after.',
    );
  }
  return databaseConnection;
}
