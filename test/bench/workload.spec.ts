/** That the benchmark still runs, and what of its figures does not depend on the machine. Times are never judged here. */
const place = '../../bench';

interface Database {
  name: string;
  key: string;
  facts: Record<string, string | number>;
  countStatements(): { counter: { commits: number; queries: number }; stop(): void };
  close(): void;
}

interface Application {
  complete(prompt: string): Promise<string>;
  query(sql: string): Promise<Record<string, unknown>[]>;
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

  it('the table says what was measured, the goal, and whether it was met', async () => {
    const { figuresOf } = await load<{ figuresOf(key: string, measured: object): object[] }>('goals.mjs');
    const { tableOf } = await load<{ tableOf(name: string, facts: object, figures: object[]): string }>('report.mjs');
    const idle = { perSecond: { 1: 0.5, 64: 3 } };

    const lines = tableOf(database.name, database.facts, figuresOf(database.key, { idle })).split('\n');

    expect(lines.at(-2)).toMatch(/^idle worker, 1 run at a time.* 0\.50 {2}≤ 1 +met$/);
    expect(lines.at(-1)).toMatch(/^idle worker, 64 runs at a time.* 3\.00 {2}≤ 1 +missed$/);
  });
});
