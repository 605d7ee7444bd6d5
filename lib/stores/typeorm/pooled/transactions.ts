import { type BatchFailures, DatabaseFailure, forCaller } from '../database-failure.js';
import { type Program, runProgram } from '../program.js';
import type { OwnTransaction } from '../run-database.js';
import { runBatched } from './batched-programs.js';
import { type Connections, repeat } from './connections.js';
import { type BatchOutcome, GroupCommit, type GroupJob, type Unanswered } from './group-commit.js';
import type { DriverConnection, PooledDriver } from './pooled-driver.js';

interface TransactionJob extends GroupJob {
  readonly transaction: OwnTransaction<unknown>;
}

/**
 * Transactions of our own on a database with a pool. They run at READ COMMITTED, are rolled back explicitly whatever
 * ended them, and are repeated with jitter on the database's own conflicts. One whose COMMIT got no answer is looked up
 * before it is repeated, and again after: what was still on its way may land between the two. Those of different runs
 * share a BEGIN, a COMMIT, and each statement that they have in common.
 */
export class Transactions {
  private readonly group: GroupCommit<TransactionJob>;

  constructor(
    private readonly driver: Pick<PooledDriver, 'begin' | 'beginBatch'>,
    private readonly connections: Connections,
    private readonly failures: BatchFailures,
  ) {
    this.group = new GroupCommit<TransactionJob>(
      {
        runBatched: (jobs) => this.runBatched(jobs),
        runIndividually: (job, unanswered) => this.runIndividually(job, unanswered),
      },
      failures,
    );
  }

  get isIdle(): boolean {
    return this.group.isIdle;
  }

  /** A program without a transaction. */
  read<T>(doing: string, program: () => Program<T>, deadline = this.connections.deadline()): Promise<T> {
    return repeat(doing, this.connections, deadline, () =>
      this.connections.use(doing, deadline, (connection) => runProgram(connection, program())),
    );
  }

  write<T>(transaction: OwnTransaction<T>): Promise<T> {
    const { conflictKeys = [] } = transaction;
    const deadline = this.connections.deadline();
    return this.group.run({ transaction: transaction as OwnTransaction<unknown>, conflictKeys, size: 0, deadline });
  }

  private runIndividually(
    { transaction, deadline }: TransactionJob,
    unanswered: Unanswered<unknown> | undefined,
  ): Promise<unknown> {
    const { doing, program, wasCommitted } = transaction;
    let doubtful = unanswered;
    const didCommit = async ({ value }: Unanswered<unknown>): Promise<boolean> =>
      wasCommitted !== undefined && (await this.read(doing, () => wasCommitted(value), deadline));
    return repeat(doing, this.connections, deadline, async () => {
      if (doubtful && (await didCommit(doubtful))) return doubtful.value;
      const [tried] = await Promise.allSettled([
        this.connections.use(doing, deadline, (connection) =>
          inTransaction(connection, this.driver.begin, () => runProgram(connection, program())),
        ),
      ]);
      // What it ran into may be its own earlier try: some databases hide a new row until it is committed.
      if (doubtful && (await didCommit(doubtful))) return doubtful.value;
      if (tried.status === 'rejected') throw tried.reason;
      if ('committed' in tried.value) return tried.value.committed;
      doubtful = tried.value;
      throw new DatabaseFailure('conflict', 'COMMIT_LOST');
    });
  }

  private async runBatched(jobs: readonly TransactionJob[]): Promise<readonly BatchOutcome<unknown>[]> {
    const { transaction, deadline } = jobs.reduce((first, job) => (job.deadline < first.deadline ? job : first));
    let sent: readonly BatchOutcome<unknown>[] | undefined;
    try {
      const ended = await this.connections.use(transaction.doing, deadline, (connection) =>
        inTransaction(
          connection,
          this.driver.beginBatch,
          () =>
            runBatched(
              connection,
              jobs.map((job) => job.transaction.program()),
            ),
          (outcomes) => (sent = outcomes),
        ),
      );
      return 'committed' in ended ? forCallers(ended.committed, jobs) : ended.value.map(unansweredOf);
    } catch (error) {
      // Before COMMIT was sent nothing is committed.
      if (!sent) throw error;
      this.failures.report(error);
      return sent.map(unansweredOf);
    }
  }
}

function forCallers(
  outcomes: readonly BatchOutcome<unknown>[],
  jobs: readonly TransactionJob[],
): BatchOutcome<unknown>[] {
  return outcomes.map((outcome, index) =>
    'error' in outcome ? { error: forCaller(outcome.error, jobs[index]?.transaction.doing ?? 'commit') } : outcome,
  );
}

/** Whether it is committed is not known. */
function unansweredOf(outcome: BatchOutcome<unknown>): BatchOutcome<unknown> {
  return { individually: true, unanswered: 'value' in outcome ? outcome : undefined };
}

/**
 * Work between BEGIN and COMMIT, rolled back if it fails. Returns what was committed, or what may have been where the
 * connection was lost under the COMMIT.
 * @param onCommitting called when the COMMIT is sent
 */
async function inTransaction<T>(
  connection: DriverConnection,
  begin: readonly string[],
  work: () => Promise<T>,
  onCommitting?: (value: T) => void,
): Promise<{ committed: T } | Unanswered<T>> {
  let unanswered: Unanswered<T> | undefined;
  try {
    for (const sql of begin) await connection.control(sql);
    const value = await work();
    unanswered = { value };
    onCommitting?.(value);
    await connection.control('COMMIT');
    return { committed: value };
  } catch (error) {
    if (error instanceof DatabaseFailure && error.isConnectionLost && unanswered) return unanswered;
    // A lock timeout of InnoDB ends the statement only; the locks are held until this.
    await connection.control('ROLLBACK').catch(() => connection.destroy());
    throw error;
  }
}
