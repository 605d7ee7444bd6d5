/**
 * A transactional tool on a database with a pool (JRN-5b, decision 12): a query runner of its own, a savepoint at the start, its release immediately before the
 * append, the fence last, so that no lock on our tables is held while the tool's method runs. A lost answer to COMMIT is settled by reading the journal row
 * back, after the run's row could be locked: nothing that was still on its way can land after that.
 */
import type { DataSource, QueryRunner } from 'typeorm';
import type { AppendRequest, ToolTransaction } from '../../../contracts/ports/run-store.port.js';
import { StoreConflictError } from '../../../errors/store/store-conflict.error.js';
import { prepareAppend, type PreparedAppend } from '../append-entries.js';
import { DatabaseFailure, forCaller } from '../database-failure.js';
import { hasRowLanded } from '../journal-row.js';
import type { Program } from '../program.js';
import { ToolCommitRefusedError } from '../tool-commit-refused.error.js';
import { toolManager, type ToolManager } from '../tool-manager.js';
import { appendFenced } from './append-flusher.js';
import type { DriverConnection, PooledDriver } from './pooled-driver.js';

const SAVEPOINT = 'agent_runs_tool';

export interface PooledToolTransactionPorts {
  dataSource: DataSource;
  driver: PooledDriver;
  timeoutMs: number;
  /** On another connection, repeated until it is answered. */
  read<T>(doing: string, program: () => Program<T>): Promise<T>;
}

export class PooledToolTransaction implements ToolTransaction {
  private runner: QueryRunner | undefined;
  private connection: DriverConnection | undefined;
  private tool: ToolManager | undefined;
  private ending: Promise<void> | undefined;
  private isCommitted = false;

  constructor(private readonly ports: PooledToolTransactionPorts) {}

  async begin(): Promise<unknown> {
    const { dataSource, driver } = this.ports;
    const runner = dataSource.createQueryRunner();
    this.runner = runner;
    try {
      this.connection = driver.wrap(await runner.connect());
      await runner.startTransaction('READ COMMITTED');
      await this.connection.control(`SAVEPOINT ${SAVEPOINT}`);
    } catch (error) {
      await this.rollback();
      throw this.forCaller(error, 'begin a transactional tool');
    }
    this.tool = toolManager(dataSource, runner);
    return this.tool.manager;
  }

  async commit(append: AppendRequest): Promise<void> {
    if (this.isCommitted) return;
    const prepared = prepareAppend(append);
    this.tool?.revoke();
    if (!this.runner || !this.connection || this.ending) throw lost();
    const { runner, connection } = this;
    try {
      await this.append(connection, prepared);
      await this.commitRunner(runner, prepared);
    } catch (error) {
      await this.rollback();
      throw this.forCaller(error, 'commit a transactional tool');
    }
    this.isCommitted = true;
    this.ending = runner.release();
    await this.ending;
  }

  async rollback(): Promise<void> {
    this.tool?.revoke();
    if (!this.runner) return;
    this.ending ??= this.abandon(this.runner);
    await this.ending;
  }

  isConflict(error: unknown): boolean {
    return this.ports.driver.failureOf(error)?.verdict === 'conflict';
  }

  private async append(connection: DriverConnection, append: PreparedAppend): Promise<void> {
    try {
      await connection.control(`RELEASE SAVEPOINT ${SAVEPOINT}`);
    } catch (error) {
      if (error instanceof DatabaseFailure && error.isConnectionLost) throw error;
      throw lost();
    }
    await appendFenced(this.ports.driver, connection, append);
  }

  private async commitRunner(runner: QueryRunner, append: PreparedAppend): Promise<void> {
    try {
      await runner.commitTransaction();
    } catch (error) {
      const failure = this.ports.driver.failureOf(error);
      if (failure?.isConnectionLost) {
        const { dialect } = this.ports.driver;
        if (await this.ports.read('look for a result', () => hasRowLanded(dialect, append))) return;
        throw lost();
      }
      if (failure?.verdict === 'broken') throw new ToolCommitRefusedError(failure.databaseCode);
      throw error;
    }
  }

  private async abandon(runner: QueryRunner): Promise<void> {
    try {
      if (runner.isTransactionActive) await runner.rollbackTransaction();
    } catch {
      // What cannot be rolled back must not go back to the pool with its transaction open.
      this.connection?.destroy();
    } finally {
      await runner.release().catch(() => undefined);
    }
  }

  private forCaller(error: unknown, doing: string): unknown {
    return forCaller(this.ports.driver.failureOf(error) ?? error, doing);
  }
}

function lost(): StoreConflictError {
  return new StoreConflictError(
    "The transaction of a transactional tool ended before the tool did: the database rolled it back, or the host's code ended it. Nothing of the tool is committed; run it again.",
  );
}
