// The suite over every statement of every hot call, however full the database is. What a statement reads is counted by the server, so nothing here depends on
// how fast the machine is.
import type { QueryRunner } from 'typeorm';
import { running, upTo } from '../../../../packages/contract/lib/scenario.js';
import { BOUND } from '../../../../lib/stores/typeorm/store-metrics.js';
import { describeServers, ServerSubject, type ServerHost } from '../server-subject.js';
import { Crowd, type CrowdSize } from './crowd.js';
import { CALLER_CALLS, INBOX_CALLS, LIST_CALLS, WORKER_CALLS, type HotCall } from './hot-calls.js';
import { explain, inWords, rowsRead, type QueryPlan } from './query-plan.js';
import { StatementRecorder } from './statement-recorder.js';

/** Tables that grow with use, by name or, as MariaDB tells them, by the aliases that the store gives them. */
const GROWING = /^(?:agent_runs|agent_run_(?:journal|interactions|metadata)|r|j|l|i|m\d+)$/;

export function describePlans(size: CrowdSize): void {
  describeServers(`the statements of the store on %s, with ${size.settled} settled runs`, (type) => {
    let subject: ServerSubject;
    let host: ServerHost;
    let recorder: StatementRecorder;
    let runner: QueryRunner;

    beforeAll(async () => {
      subject = await ServerSubject.create(type);
      // Gathering a large crowd takes longer than any statement of the store.
      host = await subject.open();
      recorder = StatementRecorder.on(host.dataSource);
      for (const n of upTo(16)) await running(host.store, { id: `running-${n}` }, 'worker-live');
      await new Crowd(type, subject.admin, host.store).gather(size);
      runner = subject.admin.createQueryRunner();
    }, 120_000);

    afterAll(async () => {
      await runner.release();
      await subject.dispose(false);
      await ServerSubject.dropDatabases();
    }, 120_000);

    const prove = async ({ atMost, mayScan, call }: HotCall): Promise<void> => {
      const plans: QueryPlan[] = [];
      for (const statement of await recorder.during(() => call(host.store)))
        plans.push(...(await explain(type, runner, statement)));
      expect(plans.length).toBeGreaterThan(0);
      const scans = plans.flatMap(({ accesses }) =>
        accesses.filter((one) => one.isFullScan && GROWING.test(one.table)),
      );
      const limit = typeof atMost === 'number' ? atMost : atMost(size);
      expect({
        plans: inWords(plans),
        scans: mayScan ? [] : scans,
        rows: Math.max(rowsRead(plans), limit),
      }).toEqual({ plans: expect.anything() as unknown, scans: [], rows: limit });
    };

    it('OPS-2: the metrics see what is open behind all that is settled, and how long the journal is', async () => {
      const { runsByStatus, openInteractions, journalRows } = await host.store.metrics();
      const rows = size.settled * size.journalRowsEach + size.waiting * 3 + size.pending;
      expect(runsByStatus.waiting).toBeGreaterThanOrEqual(Math.min(size.waiting, BOUND) - 1);
      expect(runsByStatus.pending).toBeGreaterThan(size.pending / 2);
      expect(openInteractions).toBeGreaterThanOrEqual(Math.min(size.waiting, BOUND) - 1);
      // Beyond the bound it is the server's estimate.
      expect(journalRows).toBeGreaterThan(rows * 0.7);
      expect(journalRows).toBeLessThan(rows * 1.4);
    });

    it.each(WORKER_CALLS)('B119: $title reads by an index, and no more for all that lies there', prove);
    it.each(CALLER_CALLS)('B119: $title reads by an index, and no more for all that lies there', prove);
    it.each(LIST_CALLS)('STO-8: $title reads by an index, and no more for all that lies there', prove);
    it.each(INBOX_CALLS)('PPL-9: $title reads by an index, and no more for all that lies there', prove);
  });
}
