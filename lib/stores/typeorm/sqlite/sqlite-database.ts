import { AsyncLocalStorage } from 'node:async_hooks';
import type { DataSource } from 'typeorm';
import type { ToolTransaction } from '../../../contracts/ports/run-store.port.js';
import { InvalidRequestError } from '../../../errors/request.errors.js';
import { StoreUnavailableError } from '../../../errors/store.errors.js';
import { explainAppend, JOURNAL_COLUMNS, type PreparedAppend } from '../journal-rows.js';
import { type ConflictCounter, DatabaseFailure, forCaller } from '../database-failure.js';
import { LARGEST_TEXT_BYTES, type Dialect } from '../dialect.js';
import { queryRunnerOf } from '../tool-manager.js';
import type { JoinedWork, OwnTransaction, ProgramMaker, RunDatabase } from '../run-database.js';
import { CommitQueue } from './commit-queue.js';
import { HostTransactions } from './host-transactions.js';
import { handleOf, SqliteSession } from './sqlite-session.js';
import { SqliteToolTransaction } from './sqlite-tool-transaction.js';
import { sqliteDialect } from './sqlite.dialect.js';

const RETRY_READ_MS = 5;

const { tables } = sqliteDialect;
/** Fenced by the statement itself; it runs under SQLite's write lock, so what it saw still holds at COMMIT. */
const APPEND =
  `INSERT INTO ${tables.journal} (${JOURNAL_COLUMNS.join(', ')}) SELECT ?, ?, ?, ?, ?, ?, ? FROM ${tables.runs} ` +
  `WHERE id = ? AND attempt = ? AND status = 'running'`;
const APPEND_NEXT = `${APPEND} ON CONFLICT DO NOTHING`;
const APPEND_CHECKED =
  `${APPEND} AND ? > 0 AND ? = 1 + COALESCE((SELECT first_sequence + entry_count - 1 FROM ${tables.journal} ` +
  `WHERE run_id = ? ORDER BY first_sequence DESC LIMIT 1), 0)`;
const RUN_IS_THERE = `SELECT 1 AS found FROM ${tables.runs} WHERE id = ?`;

/**
 * SQLite behind the store. Everything runs on the host's one connection, each of our transactions in one synchronous turn of the commit queue; reads are
 * answered at once. While a transaction of the host is open, reads see its uncommitted rows, as every statement on that connection does: a run created in it
 * is visible early in this process, but can be claimed by nobody before the commit, since a claim is a write.
 */
export class SqliteDatabase implements RunDatabase {
  readonly dialect: Dialect = sqliteDialect;
  readonly isDurable: boolean;
  readonly maxCommitBytes = LARGEST_TEXT_BYTES;
  private readonly host: HostTransactions;
  private readonly queue: CommitQueue;
  /** The tool whose method the running code is part of. */
  private readonly inside = new AsyncLocalStorage<SqliteToolTransaction>();
  private readonly untold = new Map<string, () => void>();
  private current: SqliteSession | undefined;
  private isClosed = true;

  constructor(
    private readonly dataSource: DataSource,
    private readonly timeoutMs: number,
    private readonly conflicts: ConflictCounter,
  ) {
    this.isDurable = !isInMemory(dataSource.options.database);
    this.host = new HostTransactions(dataSource, () => this.current?.inTransaction ?? false);
    this.queue = new CommitQueue(this.host, () => this.session(), timeoutMs, conflicts);
  }

  open(): Promise<void> {
    this.isClosed = false;
    this.session();
    return Promise.resolve();
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.queue.drained();
    this.queue.stop();
    this.host.stop();
    this.untold.clear();
    this.current = undefined;
  }

  async read<T>(doing: string, program: ProgramMaker<T>): Promise<T> {
    this.refuseClosed();
    // Reads are answered at once, so a caller that asks in a loop would never let a commit have its turn.
    await nextTurn();
    const deadline = performance.now() + this.timeoutMs;
    for (;;) {
      try {
        return this.readNow(program);
      } catch (error) {
        this.conflicts.count(error);
        const isLate = performance.now() >= deadline;
        if (!(error instanceof DatabaseFailure) || error.verdict !== 'conflict') throw forCaller(error, doing);
        if (isLate) throw new DatabaseFailure('unavailable', error.databaseCode).toStoreError(doing);
        await new Promise((next) => setTimeout(next, RETRY_READ_MS * (0.5 + Math.random())));
      }
    }
  }

  async write<T>({ doing, program }: OwnTransaction<T>): Promise<T> {
    this.refuse(doing);
    return this.queue.submit(doing, (session) => session.run(program()));
  }

  async append(append: PreparedAppend): Promise<void> {
    this.refuse('append');
    await this.queue.submit('append', (session) => appendNow(session, append));
  }

  // Async, so that a refusal is a rejection and never a throw into the caller's turn.

  async join<T>(doing: string, transaction: unknown, { program }: JoinedWork<T>): Promise<T> {
    this.refuseClosed();
    queryRunnerOf(transaction, this.dataSource);
    const session = this.session();
    if (!session.inTransaction) {
      throw new InvalidRequestError('`transaction` is over: the connection is in no transaction any more.');
    }
    try {
      session.control('SAVEPOINT agent_runs_join');
      try {
        return session.run(program(0));
      } catch (error) {
        if (session.inTransaction) session.control('ROLLBACK TO agent_runs_join');
        throw error;
      } finally {
        if (session.inTransaction) session.control('RELEASE agent_runs_join');
      }
    } catch (error) {
      throw forCaller(error, doing);
    }
  }

  afterHostCommit(_transaction: unknown, runId: string, callback: () => void): void {
    this.untold.set(runId, callback);
    this.host.whenOver(this.tell);
  }

  changeSchema<T>(program: ProgramMaker<T>): Promise<T> {
    return this.write({ doing: 'change the schema', program });
  }

  openToolTransaction(): ToolTransaction {
    return new SqliteToolTransaction({
      dataSource: this.dataSource,
      queue: this.queue,
      timeoutMs: this.timeoutMs,
      enter: (transaction, body) => this.inside.run(transaction, body),
      append: appendNow,
    });
  }

  private readNow<T>(program: ProgramMaker<T>): T {
    const session = this.session();
    // Inside a transaction of the host, or of a tool, reads are part of it.
    if (session.inTransaction) return session.run(program());
    return session.withoutWaiting(() => session.run(program()));
  }

  /** No transaction is open now, so what is there is committed; what is not was rolled back, be it to a savepoint only. */
  private readonly tell = (): void => {
    const told = [...this.untold];
    this.untold.clear();
    for (const [runId, callback] of told) {
      if (!this.isThere(runId)) continue;
      try {
        callback();
      } catch {
        // It wakes a worker; the commit of the host, in whose turn this runs, must not fail for it.
      }
    }
  };

  private isThere(runId: string): boolean {
    try {
      return this.session().execute({ sql: RUN_IS_THERE, params: [runId], writes: false }).rows.length > 0;
    } catch {
      // Nobody is told; the worker's poll finds the run.
      return false;
    }
  }

  private refuse(doing: string): void {
    this.refuseClosed();
    if (!this.inside.getStore()?.isOpen) return;
    throw new InvalidRequestError(
      `A transactional tool asked the store to ${doing}. SQLite has one connection, which belongs to the tool's transaction until its method returns: do it outside the tool; only reads, and \`start\` with \`{ transaction: context.manager }\`, are possible inside.`,
    );
  }

  private refuseClosed(): void {
    if (this.isClosed) throw new StoreUnavailableError('The store is closed. Open it before use.');
  }

  private session(): SqliteSession {
    const handle = handleOf(this.dataSource);
    if (this.current?.handle !== handle) this.current = new SqliteSession(handle);
    return this.current;
  }
}

/** As better-sqlite3 reads it: a blank name is a temporary file, a buffer is a copy of a database. */
function isInMemory(database: unknown): boolean {
  return typeof database !== 'string' || ['', ':memory:'].includes(database.trim());
}

function nextTurn(): Promise<void> {
  return new Promise((next) => setImmediate(next));
}

function appendNow(session: SqliteSession, append: PreparedAppend): void {
  const { runId, attempt, firstSequence, count, totals, entries } = append;
  const row = [runId, firstSequence, count, attempt, Date.now(), totals, entries, runId, attempt];
  const matched =
    append.isNext && count > 0
      ? session.change(APPEND_NEXT, row)
      : session.change(APPEND_CHECKED, [...row, count, firstSequence, runId]);
  // Where nothing was written, its neighbours in the group need not be taken back.
  if (matched === 1) return;
  session.writes -= 1;
  session.run(explainAppend(sqliteDialect, append));
}
