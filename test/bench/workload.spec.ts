/** That the benchmark still runs, and what of its figures does not depend on the machine. Times are never judged here. */
const place = '../../bench';

interface Database {
  name: string;
  key: string;
  facts: Record<string, string | number>;
  countStatements(): { counter: { commits: number; queries: number }; stop(): void };
  close(): void;
}

interface WorkerProcess {
  complete(runs: number, atOnce: number): Promise<void>;
  stop(): Promise<void>;
}

type Query = (sql: string) => Promise<Record<string, unknown>[]>;

interface CrowdOfRuns {
  copy(runId: string, count: number): Promise<void>;
}

interface Application {
  complete(prompt: string): Promise<string>;
  query: Query;
  close(): Promise<void>;
}

async function load<T>(file: string): Promise<T> {
  return (await import(`${place}/${file}`)) as T;
}

describe('bench', () => {
  let database: Database;
  let app: Application;
  let promptOf: (workload: { turns: number; bytes?: number }) => string;

  beforeAll(async () => {
    const { openSqlite } = await load<{ openSqlite(synchronous: string): Database }>('databases/sqlite.mjs');
    const { startApplication } = await load<{ startApplication(on: Database): Promise<Application> }>(
      'application.mjs',
    );
    ({ promptOf } = await load<{ promptOf: typeof promptOf }>('instant-model.mjs'));
    database = openSqlite('NORMAL');
    app = await startApplication(database);
  });

  afterAll(async () => {
    await app.close();
    database.close();
  });

  it('spec 3.5: a run of ten turns takes at most 23 commits, each with one journal row', async () => {
    const { counter, stop } = database.countStatements();
    let runId: string;
    try {
      runId = await app.complete(promptOf({ turns: 10 }));
    } finally {
      stop();
    }
    const rows = await app.query(`SELECT COUNT(*) AS count FROM agent_run_journal WHERE run_id = '${runId}'`);

    expect(counter.commits).toBeLessThanOrEqual(23);
    expect(rows).toEqual([{ count: counter.commits }]);
  });

  it('spec 3.5: the journal grows by the same bytes with each turn', async () => {
    const runId = await app.complete(promptOf({ turns: 120 }));
    const rows = await app.query(
      `SELECT OCTET_LENGTH(entries) + OCTET_LENGTH(totals) AS size FROM agent_run_journal WHERE run_id = '${runId}' ORDER BY first_sequence`,
    );
    const turn = (at: number): number => Number(rows[2 * at]?.['size']) + Number(rows[2 * at + 1]?.['size']);

    expect(turn(110) / turn(20)).toBeLessThanOrEqual(1.1);
  });

  it('another process does its share on the same database', async () => {
    const { Worker } = await load<{ Worker: { start(on: Database, settings: object): Promise<WorkerProcess> } }>(
      'worker.mjs',
    );
    const completed = `SELECT COUNT(*) AS count FROM agent_runs WHERE status = 'completed'`;
    const [before] = await app.query(completed);
    const worker = await Worker.start(database, { trigger: false });
    try {
      await Promise.all([worker.complete(4, 2), app.complete(promptOf({ turns: 1 }))]);
    } finally {
      await worker.stop();
    }
    expect(await app.query(completed)).toEqual([{ count: Number(before?.['count']) + 5 }]);
  });

  it('a crowd is copies of a run, with its journal and its asks', async () => {
    const { Crowd } = await load<{ Crowd: { on(query: Query): Promise<CrowdOfRuns> } }>('crowd.mjs');
    const runId = await app.complete(promptOf({ turns: 2 }));
    const rowsOf = async (where: string) =>
      Number((await app.query(`SELECT COUNT(*) AS count FROM agent_run_journal WHERE ${where}`))[0]?.['count']);
    const its = await rowsOf(`run_id = '${runId}'`);
    const before = await rowsOf('1 = 1');

    await (await Crowd.on((sql) => app.query(sql))).copy(runId, 300);

    expect(await rowsOf('1 = 1')).toBe(before + 300 * its);
    const copies = await app.query(`SELECT COUNT(*) AS count FROM agent_runs WHERE id LIKE 'copy-%'`);
    expect(copies).toEqual([{ count: 300 }]);
  });

  it('the table says what was measured, the goal, and whether it was met', async () => {
    const { figuresOf } = await load<{ figuresOf(key: string, measured: object): object[] }>('goals.mjs');
    const { tableOf } = await load<{ tableOf(name: string, facts: object, figures: object[]): string }>('report.mjs');
    const idle = { perSecond: { 1: 0.5, 64: 3 } };

    const lines = tableOf(database.name, database.facts, figuresOf(database.key, { idle })).split('\n');

    expect(lines.at(-2)).toMatch(/^idle worker, 1 run at a time.* 0\.50 {2}≤ 1 +met$/);
    expect(lines.at(-1)).toMatch(/^idle worker, 64 runs at a time.* 3\.00 {2}≤ 1 +missed$/);
  });
});
