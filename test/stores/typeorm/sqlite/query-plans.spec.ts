import type { RunStore } from '../../../../lib/contracts/ports/run-store.port.js';
import { cursorAfter } from '../../../../lib/stores/typeorm/page-cursor.js';
import { OFFER, running, submit, upTo } from '../../../../lib/testing/store-contract/scenario.js';
import { SqliteSubject } from '../sqlite-subject.js';

/** What SQLite does for the statements of a call, one line a table. */
async function planOf(call: (store: RunStore) => Promise<unknown>): Promise<string[]> {
  const subject = await SqliteSubject.create();
  const statements: string[] = [];
  let isRecording = false;
  const verbose = (sql: unknown): void => void (isRecording && statements.push(String(sql)));
  const { store, dataSource } = await subject.open({}, { verbose });
  for (const n of upTo(30))
    await submit(store, { id: `run-${n}`, ...(n % 2 ? { sessionId: `session-${n % 5}` } : {}) });
  await running(store, { id: 'run-0' });
  isRecording = true;
  await call(store);
  isRecording = false;
  const plan: string[] = [];
  for (const sql of statements.filter((text) => /^(SELECT|INSERT|UPDATE)/.test(text))) {
    const steps = await dataSource.query<{ detail: string }[]>(`EXPLAIN QUERY PLAN ${sql}`);
    plan.push(...steps.map(({ detail }) => detail));
  }
  await subject.dispose();
  return plan;
}

const scans = (plan: string[]): string[] => plan.filter((step) => /^SCAN (r|j|i|m|l|w|agent_\w+)\b/.test(step));

describe('the statements of the store on SQLite', () => {
  it.each<[string, (store: RunStore) => Promise<unknown>]>([
    [
      'a poll',
      (store) => store.due({ offers: [OFFER], contractVersion: 1, limit: 10, takeovers: true, held: ['run-0'] }),
    ],
    ['a claim', (store) => store.transition({ runId: 'run-1', session: true, decide: () => ({ result: 1 }) })],
    ['a submission', (store) => submit(store, { id: 'run-99', sessionId: 'session-1' })],
    ['a count of pending runs', (store) => store.countPending(10)],
    ['a page of a status', (store) => store.list({ statuses: ['pending'], limit: 10 })],
    ['a page of a metadata value', (store) => store.list({ metadata: { tenant: 'a' }, limit: 10 })],
    ['a journal', (store) => store.readJournal('run-0', 0, 10)],
  ])('B119: find what they need for %s by an index', async (_what, call) => {
    const plan = await planOf(call);
    expect(plan.length).toBeGreaterThan(0);
    expect(scans(plan)).toEqual([]);
  });

  it('STO-8: walk the list of all runs in the order of an index, without sorting', async () => {
    const plan = await planOf((store) => store.list({ limit: 10 }));
    expect(plan).toContain('SCAN r USING INDEX agent_runs_list');
    expect(plan.filter((step) => step.includes('TEMP B-TREE'))).toEqual([]);
  });

  it('PPL-9: walk the open asks in the order of an index, without sorting', async () => {
    const first = { createdAt: 1, runId: 'run-1', place: 'r11.m11.t10#10', id: 'ask_1' };
    for (const cursor of [undefined, cursorAfter('interactions', first)]) {
      const plan = await planOf((store) =>
        store.interactions({ statuses: ['pending'], limit: 10, ...(cursor !== undefined && { cursor }) }),
      );
      expect(plan[0]).toMatch(/^SEARCH i USING INDEX agent_run_interactions_open \(status=\?/);
      expect(plan).toHaveLength(1);
    }
  });

  it('B119: poll a long queue in the order of an index, without sorting', async () => {
    const plan = await planOf((store) =>
      store.due({ offers: [OFFER], contractVersion: 1, limit: 10, takeovers: false, held: [] }),
    );
    expect(plan).toContain('SEARCH r USING INDEX agent_runs_status (status=?)');
    expect(
      plan.some((step) => /SEARCH r USING INDEX agent_runs_due \(status=\? AND next_attempt_at<\?\)/.test(step)),
    ).toBe(true);
    expect(plan.filter((step) => step.includes('TEMP B-TREE FOR ORDER BY'))).toEqual([]);
  });
});
