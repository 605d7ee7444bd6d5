import type { RunStore } from '../../../../lib/contracts/ports/run-store.port.js';
import type { TypeOrmRunStore } from '../../../../lib/stores/typeorm/typeorm-run.store.js';
import { anInteraction, ask, OFFER, running, submit, upTo } from '../../../../packages/contract/lib/scenario.js';
import { CALLER_CALLS, INBOX_CALLS, LIST_CALLS, WORKER_CALLS, type HotCall } from '../plans/hot-calls.js';
import { SqliteSubject } from '../sqlite-subject.js';

/** What SQLite does for the statements of a call, one line a table. It plans without counting rows, so a few runs tell as much as many. */
class Plans {
  private constructor(
    private readonly subject: SqliteSubject,
    readonly store: TypeOrmRunStore,
    private readonly explain: (sql: string) => Promise<{ detail: string }[]>,
    private readonly heard: { statements: string[] | undefined },
  ) {}

  static async make(): Promise<Plans> {
    const subject = await SqliteSubject.create();
    const heard: { statements: string[] | undefined } = { statements: undefined };
    const { store, dataSource } = await subject.open(
      {},
      { verbose: (sql: unknown) => heard.statements?.push(String(sql)) },
    );
    for (const n of upTo(16)) await running(store, { id: `running-${n}` }, 'worker-live');
    for (const n of upTo(36))
      await submit(store, { id: `pending-${n}`, ...(n % 2 ? { sessionId: `s-${n % 5}` } : {}) });
    for (const id of ['settled-7', 'settled-8']) await submit(store, { id, status: 'completed', requestScope: id });
    for (const id of ['waiting-7', 'waiting-8']) {
      await submit(store, { id, status: 'waiting', waitingFor: ['approval'] });
      await ask(store, [anInteraction({ id: `ask-${id}`, runId: id })], id);
    }
    for (const n of upTo(25)) await submit(store, { id: `failed-${n}`, status: 'failed' });
    return new Plans(subject, store, (sql) => dataSource.query(`EXPLAIN QUERY PLAN ${sql}`), heard);
  }

  async of(call: (store: RunStore) => Promise<unknown>): Promise<string[]> {
    const statements = (this.heard.statements = [] as string[]);
    await call(this.store);
    this.heard.statements = undefined;
    const plan: string[] = [];
    for (const sql of statements.filter((text) => /^(SELECT|INSERT|UPDATE)/.test(text)))
      plan.push(...(await this.explain(sql)).map(({ detail }) => detail));
    return plan;
  }

  dispose(): Promise<void> {
    return this.subject.dispose();
  }
}

/** Reading a table from end to end, except for the list of all runs, which an index has in its order. */
const scans = (plan: string[]): string[] =>
  plan.filter(
    (step) =>
      /^SCAN (r|j|i|l|m\d*|agent_\w+)\b/.test(step) &&
      !/USING COVERING INDEX agent_runs_list|agent_run_workers/.test(step),
  );

describe('the statements of the store on SQLite', () => {
  let plans: Plans;
  beforeAll(async () => {
    plans = await Plans.make();
  });
  afterAll(() => plans.dispose());

  const HOT: readonly HotCall[] = [...WORKER_CALLS, ...CALLER_CALLS, ...LIST_CALLS, ...INBOX_CALLS];
  it.each(HOT.filter(({ mayScan }) => !mayScan))('B119: $title reads by an index', async ({ call }) => {
    const plan = await plans.of(call);
    expect(plan.length).toBeGreaterThan(0);
    expect(scans(plan)).toEqual([]);
  });

  it('STO-8: the list of all runs walks an index in its order, without sorting', async () => {
    const plan = await plans.of((store) => store.list({ limit: 10 }));
    expect(plan).toContain('SCAN r USING COVERING INDEX agent_runs_list');
    expect(plan.filter((step) => step.startsWith('SCAN r '))).toHaveLength(1);
  });

  it('PPL-9: the open asks of each kind are walked in the order of an index, without sorting', async () => {
    const { nextCursor: cursor } = await plans.store.interactions({ statuses: ['pending'], limit: 1 });
    for (const after of [undefined, cursor]) {
      const plan = await plans.of((store) =>
        store.interactions({ statuses: ['pending'], limit: 1, ...(after !== undefined && { cursor: after }) }),
      );
      const walked = plan.filter((step) => step.includes(' i '));
      expect(walked).toHaveLength(2);
      for (const step of walked)
        expect(step).toMatch(/^SEARCH i USING INDEX agent_run_interactions_kind \(status=\? AND kind=\?/);
      // A sort would stand in between; what is sorted after it is a page of each kind.
      for (const [at, step] of plan.entries()) if (walked.includes(step)) expect(plan[at + 1]).toBe('SCAN one_of');
    }
  });

  it('B119: a long queue is polled in the order of an index, without sorting, and no further than to what is due', async () => {
    const plan = await plans.of((store) =>
      store.due({ offers: [OFFER], contractVersion: 1, limit: 10, takeovers: false, held: [] }),
    );
    expect(plan).toContain(
      'SEARCH r USING INDEX agent_runs_queue (status=? AND agent=? AND version=? AND definition_hash=?)',
    );
    expect(plan).toContain('SEARCH r USING INDEX agent_runs_due (status=? AND next_attempt_at<?)');
    expect(plan.filter((step) => step.includes('TEMP B-TREE FOR ORDER BY'))).toEqual([]);
  });
});
