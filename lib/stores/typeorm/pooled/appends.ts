import { runProgram } from '../program.js';
import type { BatchFailures } from '../database-failure.js';
import { explainAppend, isNextInJournal, type PreparedAppend } from '../journal-rows.js';
import { type Connections, repeat } from './connections.js';
import { GroupCommit, type GroupJob } from './group-commit.js';
import type { DriverConnection, PooledDriver } from './pooled-driver.js';

const NOT_LANDED = { individually: true } as const;
const LANDED = { value: undefined } as const;

interface AppendJob extends GroupJob {
  readonly append: PreparedAppend;
}

/**
 * The hot path on a database with a pool: appends of different runs share a statement. A batch leaves out rows that
 * somebody holds; what did not land for certain is appended individually, waiting for its row, and only that answer
 * counts as fenced or conflicting. Repeating an append is always right: the primary key refuses the second one, and the
 * identical row is a success.
 */
export class Appends {
  private readonly group: GroupCommit<AppendJob>;

  constructor(
    private readonly driver: PooledDriver,
    private readonly connections: Connections,
    failures: BatchFailures,
  ) {
    this.group = new GroupCommit<AppendJob>(
      {
        runBatched: async (jobs) => {
          const landed = await connections.use('append', (jobs[0] as AppendJob).deadline, (connection) =>
            driver.appendMany(
              connection,
              jobs.map(({ append }) => append),
            ),
          );
          return jobs.map((_, index) => (landed.has(index) ? LANDED : NOT_LANDED));
        },
        runIndividually: (job) => this.appendIndividually(job),
      },
      failures,
    );
  }

  get isIdle(): boolean {
    return this.group.isIdle;
  }

  append(append: PreparedAppend): Promise<void> {
    return this.group.run({
      append,
      conflictKeys: append.isNext ? [append.runId] : [],
      size: append.entries.length,
      deadline: this.connections.deadline(),
    });
  }

  private appendIndividually({ append, deadline }: AppendJob): Promise<void> {
    return repeat('append', this.connections, deadline, () =>
      this.connections.use('append', deadline, (connection) => appendFenced(this.driver, connection, append)),
    );
  }
}

/**
 * Appends one row under its fence on a given connection, also inside a transaction.
 * @throws FencedError, SequenceConflictError, DatabaseFailure
 */
export async function appendFenced(
  driver: Pick<PooledDriver, 'appendOne' | 'dialect'>,
  connection: DriverConnection,
  append: PreparedAppend,
): Promise<void> {
  const { dialect } = driver;
  const isNext = append.isNext || (await runProgram(connection, isNextInJournal(dialect, append)));
  if (append.count > 0 && isNext) {
    const { changes } = await connection.execute(driver.appendOne(append));
    if (changes === 1) return;
  }
  await runProgram(connection, explainAppend(dialect, append));
}
