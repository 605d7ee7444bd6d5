import { BatchAborted, ConflictCounter, DatabaseFailure } from '../../../../lib/stores/typeorm/database-failure.js';
import { type BatchOutcome, GroupCommit, type GroupJob } from '../../../../lib/stores/typeorm/pooled/group-commit.js';

interface Job extends GroupJob {
  readonly name: string;
}

const job = (name: string, ...keys: string[]): Job => ({ name, conflictKeys: keys, size: 1, deadline: Infinity });

/** Batches, and jobs that ran individually, by the names of the jobs. */
function groupOf(runBatched: (jobs: readonly Job[]) => Promise<readonly BatchOutcome<unknown>[]>) {
  const batches: string[] = [];
  const individually: string[] = [];
  const warnings: string[] = [];
  const failures = new ConflictCounter((message) => void warnings.push(message));
  const group = new GroupCommit<Job>(
    {
      runBatched: (jobs) => {
        batches.push(jobs.map(({ name }) => name).join());
        return runBatched(jobs);
      },
      runIndividually: async ({ name }) => {
        individually.push(name);
        return `${name} itself`;
      },
    },
    failures,
  );
  return { group, batches, individually, warnings, failures };
}

const together = async (jobs: readonly Job[]) => jobs.map(({ name }) => ({ value: `${name} in a batch` }));

describe('jobs of a group commit', () => {
  it('share a batch, sorted by run; one that touches the same, or may not share, runs individually', async () => {
    const { group, batches, individually } = groupOf(together);
    const jobs = [job('b', 'run-2'), job('a', 'run-1'), job('again', 'run-2'), job('never')];
    const values = await Promise.all(jobs.map((one) => group.run(one)));
    expect(values).toEqual(['b in a batch', 'a in a batch', 'again itself', 'never itself']);
    expect([batches, individually]).toEqual([['a,b'], ['never', 'again']]);
    expect(group.isIdle).toBe(true);
  });

  it('alone use the statements for one', async () => {
    const { group, batches } = groupOf(together);
    expect(await group.run(job('a', 'run-1'))).toBe('a itself');
    expect(batches).toEqual([]);
  });

  it('STO-3: of a batch that fails run individually; each failure is counted, each code is told once', async () => {
    const failing = [
      new DatabaseFailure('broken', '42601'),
      new DatabaseFailure('broken', '42601'),
      new DatabaseFailure('conflict', '40P01'),
      new BatchAborted(),
    ];
    const { group, warnings, failures } = groupOf(() => Promise.reject(failing.shift()));
    while (failing.length > 0) {
      const values = await Promise.all([group.run(job('a', 'run-1')), group.run(job('b', 'run-2'))]);
      expect(values).toEqual(['a itself', 'b itself']);
    }
    expect(failures.read()).toEqual({ BATCH_FAILED: 4 });
    expect(warnings).toEqual([expect.stringContaining('42601')]);
  });
});
