import type { DataSource, QueryRunner } from 'typeorm';
import type { AppendRequest, ToolTransaction } from '../../../contracts/ports/run-store.port.js';
import { BrokenStoreError, StoreConflictError } from '../../../errors/store.errors.js';
import { prepareAppend, type PreparedAppend } from '../journal-rows.js';
import { DatabaseFailure, forCaller, ToolCommitRefusedError } from '../database-failure.js';
import { toolManager, type ToolManager } from '../tool-manager.js';
import type { CommitQueue, ExclusiveTurn } from './commit-queue.js';
import { isDriverError, sqliteFailure, type SqliteSession } from './sqlite-session.js';
import { sqliteDialect } from './sqlite.dialect.js';

const SAVEPOINT = 'agent_runs_tool';
const ROW_IS_THERE = `SELECT 1 AS found FROM ${sqliteDialect.tables.journal} WHERE run_id = ? AND first_sequence = ? AND attempt = ?`;
/** Looks at a host transaction that has begun in TypeORM but not on the connection, before it is taken for one whose BEGIN failed. */
const PATIENCE = 20;
/** Wait for a host transaction nested in ours to end. */
const POLL_MS = 2;

/** The count of open transactions that TypeORM keeps on its query runner: 1 = BEGIN, more = savepoints. */
type CountingRunner = Omit<QueryRunner, 'isTransactionActive'> & {
  isTransactionActive: boolean;
  transactionDepth: number;
};

export interface SqliteToolTransactionPorts {
  dataSource: DataSource;
  queue: CommitQueue;
  timeoutMs: number;
  /** Runs the tool's method so that the store knows its own calls from inside it. */
  enter<T>(transaction: SqliteToolTransaction, body: () => T): T;
  append(session: SqliteSession, append: PreparedAppend): void;
}

/**
 * A transactional tool on SQLite. It has the one connection to itself; statements of the host that run meanwhile are part of it, which
 * the guide says. It begins, and it ends, each in one synchronous turn on the raw connection, with TypeORM's own count of transactions kept in step: a host
 * that starts a transaction at any moment gets a savepoint inside, never a second BEGIN, and no "commit" of ours can turn out to have been a savepoint's.
 */
export class SqliteToolTransaction implements ToolTransaction {
  private turn: ExclusiveTurn | undefined;
  private tool: ToolManager | undefined;
  private runner: CountingRunner | undefined;
  /** Never rejects. */
  private beginning: Promise<unknown> | undefined;
  private isOver = false;
  private isCommitted = false;

  constructor(private readonly ports: SqliteToolTransactionPorts) {}

  /** The tool's method may be running. */
  get isOpen(): boolean {
    return this.turn !== undefined && !this.isOver;
  }

  begin(): Promise<unknown> {
    const begun = this.beginOnce();
    this.beginning = begun.catch(() => undefined);
    return begun;
  }

  enter<T>(body: () => T): T {
    return this.ports.enter(this, body);
  }

  async commit(append: AppendRequest): Promise<void> {
    if (this.isCommitted) return;
    const prepared = prepareAppend(append);
    this.tool?.revoke();
    try {
      if (this.isOpen) await this.announce('BeforeTransactionCommit');
      await this.nestedOnesEnded();
      if (!this.turn || this.isOver) throw lost();
      this.commitNow(this.turn.session, prepared);
    } catch (error) {
      await this.rollback();
      throw forCaller(error, 'commit a transactional tool');
    }
    this.isCommitted = true;
    this.end();
    await this.tellHost('AfterTransactionCommit');
  }

  isConflict(error: unknown): boolean {
    return isDriverError(error) && sqliteFailure(error).verdict === 'conflict';
  }

  async rollback(): Promise<void> {
    this.tool?.revoke();
    // Somebody who has lost patience with `begin` must not leave behind what it still opens.
    await this.beginning;
    await this.abandon();
  }

  private async beginOnce(): Promise<unknown> {
    const runner = this.runnerOfHost();
    this.runner = runner;
    let looks = 0;
    this.turn = await this.ports.queue.claim('begin a transactional tool', (session) => {
      // TypeORM is between its decision to begin and its BEGIN, or between its COMMIT and its count: a few microtasks.
      if (runner.isTransactionActive && looks++ < PATIENCE) throw new DatabaseFailure('conflict', 'HOST_TRANSACTION');
      session.control('BEGIN IMMEDIATE');
      session.control(`SAVEPOINT ${SAVEPOINT}`);
      count(runner, 1);
    });
    this.tool = toolManager(this.ports.dataSource, runner);
    try {
      await this.announce('AfterTransactionStart');
    } catch (error) {
      await this.abandon();
      throw error;
    }
    return this.tool.manager;
  }

  private async abandon(): Promise<void> {
    if (!this.turn || this.isOver) return;
    this.tool?.revoke();
    try {
      this.turn.session.rollback();
    } catch (error) {
      throw forCaller(error, 'roll back a transactional tool');
    } finally {
      this.end();
    }
    await this.tellHost('AfterTransactionRollback');
  }

  /** In one turn: nothing of the host's can come between the savepoint's release, the fence and the COMMIT. */
  private commitNow(session: SqliteSession, append: PreparedAppend): void {
    this.releaseSavepoint(session);
    session.withoutWaiting(() => {
      this.ports.append(session, append);
      this.commitRows(session);
    });
    const [row] = session.execute({
      sql: ROW_IS_THERE,
      params: [append.runId, append.firstSequence, append.attempt],
      writes: false,
    }).rows;
    if (session.inTransaction || (!row && append.count > 0)) {
      throw new BrokenStoreError(
        `SQLite answered the COMMIT of a transactional tool of run ${append.runId}, but ${session.inTransaction ? 'its transaction is still open' : 'its journal row is not there'}.`,
        { details: { runId: append.runId, firstSequence: append.firstSequence } },
      );
    }
  }

  /** Fails where the transaction that the tool ran in is gone, although the tool, or host code below it, swallowed the error that ended it. */
  private releaseSavepoint(session: SqliteSession): void {
    try {
      session.control(`RELEASE ${SAVEPOINT}`);
    } catch {
      throw lost();
    }
  }

  private commitRows(session: SqliteSession): void {
    try {
      session.control('COMMIT');
    } catch (error) {
      // A deferred constraint of the host's tables: repeating would not help.
      if (error instanceof DatabaseFailure && error.verdict === 'broken') {
        throw new ToolCommitRefusedError(error.databaseCode);
      }
      throw error;
    }
  }

  /** A host transaction that began as a savepoint in ours must end first: our COMMIT would take its savepoint away. */
  private async nestedOnesEnded(): Promise<void> {
    const deadline = performance.now() + this.ports.timeoutMs;
    while (this.runner && this.runner.transactionDepth > 1 && this.isOpen) {
      if (performance.now() > deadline) {
        throw new StoreConflictError(
          'A transaction that began inside a transactional tool is still open after the tool has returned. Await it inside the method.',
        );
      }
      await new Promise((next) => setTimeout(next, POLL_MS));
    }
  }

  private end(): void {
    this.isOver = true;
    if (this.runner) count(this.runner, 0);
    this.turn?.release();
  }

  private runnerOfHost(): CountingRunner {
    const runner = this.ports.dataSource.createQueryRunner() as unknown as CountingRunner;
    if (typeof runner.transactionDepth !== 'number') {
      throw new BrokenStoreError('This version of TypeORM keeps no count of transactions on its SQLite query runner.');
    }
    return runner;
  }

  /** The host's subscribers hear of this transaction as of any other. */
  private async announce(
    event: 'AfterTransactionStart' | 'BeforeTransactionCommit' | 'AfterTransactionCommit' | 'AfterTransactionRollback',
  ): Promise<void> {
    await this.runner?.broadcaster.broadcast(event);
  }

  private async tellHost(event: 'AfterTransactionCommit' | 'AfterTransactionRollback'): Promise<void> {
    try {
      await this.announce(event);
    } catch {
      // What happened has happened: a subscriber of the host that throws afterwards does not make it untrue.
    }
  }
}

function lost(): StoreConflictError {
  return new StoreConflictError(
    "The transaction of a transactional tool ended before the tool did: the database rolled it back, or the host's code ended it. Nothing of the tool is committed; run it again.",
  );
}

function count(runner: CountingRunner, depth: number): void {
  runner.transactionDepth = depth;
  runner.isTransactionActive = depth > 0;
}
