/**
 * One connection's prepared statements, and programs run on it in one synchronous turn. Below TypeORM's logger: our values are never logged. Knows nothing of
 * queues; whoever begins a transaction here ends it before giving the turn back, tool transactions apart.
 */
import type { Answer, Program, SqlValue, Statement } from '../program.js';
import { sqliteFailure } from './sqlite-failure.js';
import type { SqliteHandle, SqliteStatement } from './sqlite-handle.js';

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
