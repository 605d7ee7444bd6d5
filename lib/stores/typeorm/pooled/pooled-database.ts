import type { DataSource } from 'typeorm';
import type { ToolTransaction } from '../../../contracts/ports/run-store.port.js';
import { StoreConflictError } from '../../../errors/store.errors.js';
import type { PreparedAppend } from '../journal-rows.js';
import { type ConflictCounter, DatabaseFailure, forCaller, LostRaceError } from '../database-failure.js';
import type { Dialect } from '../dialect.js';
import { queryRunnerOf } from '../tool-manager.js';
import { type Program, queryOne, runProgram } from '../program.js';
import type { JoinedWork, OwnTransaction, ProgramMaker, RunDatabase } from '../run-database.js';
import { Appends } from './appends.js';
import { closed, Connections, lostRace } from './connections.js';
import { HostCommits } from './host-commits.js';
import type { DriverConnection, PooledDriver } from './pooled-driver.js';
import { PooledToolTransaction } from './pooled-tool-transaction.js';
import { Transactions } from './transactions.js';

/** Large tables take their time, and so does another process that is at it already. */
const SCHEMA_TIMEOUT_MS = 600_000;
/** For what is under way when the store closes. */
const CLOSE_GRACE_MS = 1_000;
/** Races lost inside one transaction of the host, before it is told to repeat it. */
const MAX_RACES = 3;

/**
 * A database with a pool of connections behind the store: MySQL, MariaDB, Postgres. Transactions of our own run at READ COMMITTED, are rolled back explicitly
 * whatever ended them, and are repeated with jitter on the database's own conflicts; one whose COMMIT got no answer is looked up before
 * anything is repeated. Inside the host's transaction nothing is repeated.
 */
export class PooledDatabase implements RunDatabase {
  readonly isDurable = true;
  private readonly connections: Connections;
  private readonly transactions: Transactions;
  private readonly appends: Appends;
  private readonly hostCommits: HostCommits;
  private isClosed = true;

  constructor(
    private readonly dataSource: DataSource,
    private readonly driver: PooledDriver,
    private readonly timeoutMs: number,
    private readonly conflicts: ConflictCounter,
  ) {
    this.connections = new Connections(driver, timeoutMs, conflicts);
    this.transactions = new Transactions(driver, this.connections, conflicts);
    this.appends = new Appends(driver, this.connections, conflicts);
    this.hostCommits = new HostCommits(dataSource, (runId) => this.isThere(runId));
  }

  get dialect(): Dialect {
    return this.driver.dialect;
  }

  get maxCommitBytes(): number {
    return this.driver.maxCommitBytes;
  }

  async open(): Promise<void> {
    this.isClosed = false;
    this.connections.allow();
    try {
      await this.connections.use('be checked', this.connections.deadline(), (one) => this.driver.check(one));
    } catch (error) {
      throw forCaller(error, 'be reached');
    }
  }

  async close(): Promise<void> {
    this.isClosed = true;
    const isIdle = (): boolean => this.appends.isIdle && this.transactions.isIdle;
    for (const end = performance.now() + CLOSE_GRACE_MS; !isIdle() && performance.now() < end;) {
      await new Promise((next) => setTimeout(next, 1));
    }
    // A database that does not answer must not hold the shutdown. What was under way may have been committed, as after a crash.
    if (!isIdle()) this.connections.cut();
    this.hostCommits.stop();
  }

  async read<T>(doing: string, program: ProgramMaker<T>): Promise<T> {
    this.refuseClosed();
    return this.transactions.read(doing, program);
  }

  async write<T>(transaction: OwnTransaction<T>): Promise<T> {
    this.refuseClosed();
    return this.transactions.write(transaction);
  }

  append(append: PreparedAppend): Promise<void> {
    this.refuseClosed();
    return this.appends.append(append);
  }

  async join<T>(doing: string, transaction: unknown, { program, meanwhile }: JoinedWork<T>): Promise<T> {
    this.refuseClosed();
    const queryRunner = queryRunnerOf(transaction, this.dataSource);
    const connection = this.driver.wrap(await queryRunner.connect());
    for (let races = 0; ; races += 1) {
      try {
        return await joinOnce(connection, program(races));
      } catch (error) {
        this.conflicts.count(error);
        if (!isLost(error)) throw forCaller(error, doing);
        const found = await this.read(doing, meanwhile);
        if (found !== null) return found;
        if (error instanceof DatabaseFailure) throw inTheWay(doing, error);
        if (races >= MAX_RACES) throw lostRace(doing);
      }
    }
  }

  afterHostCommit(transaction: unknown, runId: string, callback: () => void): void {
    this.hostCommits.after(queryRunnerOf(transaction, this.dataSource), runId, callback);
  }

  async changeSchema<T>(program: ProgramMaker<T>): Promise<T> {
    const doing = 'change the schema';
    const deadline = performance.now() + SCHEMA_TIMEOUT_MS;
    try {
      return await this.connections.use(doing, deadline, (connection) =>
        this.driver.changeSchema(connection, () => runProgram(connection, program())),
      );
    } catch (error) {
      throw forCaller(error, doing);
    }
  }

  openToolTransaction(): ToolTransaction {
    return new PooledToolTransaction({
      dataSource: this.dataSource,
      driver: this.driver,
      timeoutMs: this.timeoutMs,
      read: (doing, program) => this.read(doing, program),
    });
  }

  private async isThere(runId: string): Promise<boolean> {
    const { dialect } = this;
    const row = await this.read('look for a run', () =>
      queryOne(`SELECT 1 AS found FROM ${dialect.tables.runs} WHERE id = ?`, [runId]),
    );
    return row !== undefined;
  }

  private refuseClosed(): void {
    if (this.isClosed) throw closed();
  }
}

/** @throws StoreConflictError where the database has ended the whole transaction of the host */
async function joinOnce<T>(connection: DriverConnection, program: Program<T>): Promise<T> {
  await connection.control('SAVEPOINT agent_runs_join');
  try {
    const value = await runProgram(connection, program);
    await connection.control('RELEASE SAVEPOINT agent_runs_join');
    return value;
  } catch (error) {
    try {
      await connection.control('ROLLBACK TO SAVEPOINT agent_runs_join');
    } catch {
      // InnoDB ends the whole transaction of a deadlock's victim, savepoints and all.
      if (isLost(error)) throw ended(error);
    }
    throw error;
  }
}

/** Others were in the way. */
function isLost(error: unknown): error is LostRaceError | DatabaseFailure {
  return error instanceof LostRaceError || (error instanceof DatabaseFailure && error.verdict === 'conflict');
}

function inTheWay(doing: string, { databaseCode }: DatabaseFailure): StoreConflictError {
  return new StoreConflictError(
    `The database could not ${doing} in this transaction: ${databaseCode}. Others have committed since it began; repeat the transaction.`,
    { details: { databaseCode } },
  );
}

function ended(error: LostRaceError | DatabaseFailure): StoreConflictError {
  const databaseCode = error instanceof DatabaseFailure ? error.databaseCode : 'unknown';
  return new StoreConflictError(
    `The database has ended the transaction that \`start\` was to join: ${databaseCode}. Nothing of it is left, and what is written now is outside of any transaction: roll it back and repeat it from its beginning.`,
    { details: { databaseCode } },
  );
}
