import type { DataSource, QueryRunner } from 'typeorm';
import type { AppendRequest, ToolTransaction } from '../../../contracts/ports/run-store.port.js';
import { AgentRunsError } from '../../../errors/agent-runs.error.js';
import { StoreConflictError, StoreUnavailableError } from '../../../errors/store.errors.js';
import { wasRowCommitted, prepareAppend, type PreparedAppend } from '../journal-rows.js';
import { DatabaseFailure, forCaller, ToolCommitRefusedError } from '../database-failure.js';
import type { Program } from '../program.js';
import { toolManager, type ToolManager } from '../tool-manager.js';
import { appendFenced } from './appends.js';
import { Alarm } from './connections.js';
import type { DriverConnection, PooledDriver } from './pooled-driver.js';

const SAVEPOINT = 'agent_runs_tool';

export interface PooledToolTransactionPorts {
  dataSource: DataSource;
  driver: PooledDriver;
  timeoutMs: number;
  /** On another connection, repeated until it is answered. */
  read<T>(doing: string, program: () => Program<T>): Promise<T>;
}

/**
 * A transactional tool on a database with a pool: a query runner of its own, a savepoint at the start, its release immediately before the
 * append, the fence last, so that no lock on our tables is held while the tool's method runs. A lost answer to COMMIT is settled by reading the journal row
 * back, after the run's row could be locked: nothing that was still on its way can land after that. What the database does not answer in time is ended by
 * cutting the connection, which then never goes back to the pool.
 */
export class PooledToolTransaction implements ToolTransaction {
  private runner: QueryRunner | undefined;
  private connection: DriverConnection | undefined;
  private tool: ToolManager | undefined;
  /** Never rejects. */
  private beginning: Promise<unknown> | undefined;
  private ending: Promise<void> | undefined;
  private isCommitted = false;

  constructor(private readonly ports: PooledToolTransactionPorts) {}

  begin(): Promise<unknown> {
    const begun = this.beginOnce();
    this.beginning = begun.catch(() => undefined);
    return begun;
  }

  async commit(append: AppendRequest): Promise<void> {
    if (this.isCommitted) return;
    const prepared = prepareAppend(append);
    this.tool?.revoke();
    if (!this.runner || !this.connection || this.ending) throw lost();
    const { runner, connection } = this;
    try {
      await this.inTime(connection, async () => {
        await this.append(connection, prepared);
        await this.commitRunner(runner, prepared);
      });
    } catch (error) {
      // Its session was changed, by the tool itself or by whoever had it before: the next try gets another.
      if (error instanceof DatabaseFailure && error.verdict === 'out_of_reach') connection.destroy();
      await this.end().catch(() => undefined);
      throw forCaller(this.failureOf(error) ?? error, 'commit a transactional tool');
    }
    this.isCommitted = true;
    this.ending = runner.release();
    await this.ending;
  }

  async rollback(): Promise<void> {
    this.tool?.revoke();
    // Somebody who has lost patience with `begin` must not leave behind what it still opens.
    await this.beginning;
    await this.end();
  }

  isConflict(error: unknown): boolean {
    return this.ports.driver.failureOf(error)?.verdict === 'conflict';
  }

  private async beginOnce(): Promise<unknown> {
    const { dataSource, driver, timeoutMs } = this.ports;
    const runner = dataSource.createQueryRunner();
    this.runner = runner;
    const alarm = new Alarm('begin a transactional tool', performance.now() + timeoutMs);
    try {
      const connection = driver.wrap(await alarm.raceFor(runner.connect(), () => void runner.release()));
      this.connection = connection;
      await alarm.race(this.open(runner, connection), () => connection.destroy());
    } catch (error) {
      await this.end().catch(() => undefined);
      // None of this is the tool's: what the pool, the driver or TypeORM say where they cannot connect has no code.
      throw forCaller(
        this.failureOf(error) ?? new DatabaseFailure('unavailable', 'unknown'),
        'begin a transactional tool',
      );
    } finally {
      alarm.stop();
    }
    this.tool = toolManager(dataSource, runner);
    return this.tool.manager;
  }

  private async open(runner: QueryRunner, connection: DriverConnection): Promise<void> {
    await runner.startTransaction('READ COMMITTED');
    await connection.control(`SAVEPOINT ${SAVEPOINT}`);
  }

  /** Whatever waits for an answer on the connection fails when it is cut. */
  private async inTime<T>(connection: DriverConnection, work: () => Promise<T>): Promise<T> {
    const timer = setTimeout(() => connection.destroy(), this.ports.timeoutMs);
    try {
      return await work();
    } finally {
      clearTimeout(timer);
    }
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
        if (await this.ports.read('look for a result', () => wasRowCommitted(dialect, append))) return;
        throw lost();
      }
      if (failure?.verdict === 'broken' || failure?.verdict === 'out_of_reach')
        throw new ToolCommitRefusedError(failure.databaseCode);
      throw error;
    }
  }

  private async end(): Promise<void> {
    this.tool?.revoke();
    if (!this.runner) return;
    this.ending ??= this.abandon(this.runner);
    await this.ending;
  }

  private async abandon(runner: QueryRunner): Promise<void> {
    const { connection } = this;
    // Where it is still waited for, whoever waits gives it back.
    if (!connection) return;
    try {
      await this.inTime(connection, async () => {
        // A transaction of the tool's own inside it, which nobody waited for, is a level of its own.
        while (runner.isTransactionActive) await runner.rollbackTransaction();
      });
    } catch {
      // What cannot be rolled back must not go back to the pool with its transaction open.
      connection.destroy();
      throw new StoreUnavailableError(
        'The connection of a transactional tool was lost while the tool ran. Nothing of the tool is committed.',
      );
    } finally {
      await runner.release().catch(() => undefined);
    }
  }

  private failureOf(error: unknown): Error | undefined {
    return AgentRunsError.is(error) || error instanceof DatabaseFailure ? error : this.ports.driver.failureOf(error);
  }
}

function lost(): StoreConflictError {
  return new StoreConflictError(
    "The transaction of a transactional tool ended before the tool did: the database rolled it back, or the host's code ended it. Nothing of the tool is committed; run it again.",
  );
}
