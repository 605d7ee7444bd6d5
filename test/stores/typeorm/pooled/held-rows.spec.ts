/** A row that somebody else holds while the sweeps pass: B120. */
import type { QueryRunner } from 'typeorm';
import type { TypeOrmRunStore } from '../../../../lib/stores/typeorm/typeorm-run.store.js';
import { scriptedModel } from '../../../../lib/model/scripted/scripted-model.js';
import { beat, loaded, running, submit, upTo } from '../../../../packages/contract/lib/scenario.js';
import { agent, engineOver, stopEngines, type TestEngine } from '../../../support/engine-harness.js';
import { entriesOf } from '../../../support/journal-of.js';
import { until } from '../../../support/until.js';
import { describeServers, ServerSubject } from '../server-subject.js';

const IDS = upTo(5).map((n) => `run-${n}`);
const HELD = 'run-3';
const OTHERS = IDS.filter((id) => id !== HELD);

describeServers('a sweep while somebody holds a row on %s', (type) => {
  let subject: ServerSubject;
  let store: TypeOrmRunStore;
  let engine: TestEngine;
  let holder: QueryRunner;

  beforeEach(async () => {
    subject = await ServerSubject.create(type);
    ({ store } = await subject.open({ statementTimeoutMs: 500 }));
    holder = subject.admin.createQueryRunner();
  }, 60_000);
  afterEach(async () => {
    if (holder.isTransactionActive) await holder.rollbackTransaction();
    await holder.release();
    await stopEngines();
    await subject.dispose();
  }, 60_000);
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  /** A process that looks for nothing by itself: what it finds, a sweep has told it. */
  const process = async (): Promise<void> => {
    engine = await engineOver(store, agent(scriptedModel([{ text: 'done' }], { place: 'transcript' })), {
      pollMs: 600_000,
      pollIdleMs: 600_000,
      leaseMs: 600_000,
    });
    // Its first look is over, and no other one will come.
    await engine.worker.tick();
  };
  const hold = async (): Promise<void> => {
    await holder.startTransaction();
    await holder.query(`SELECT id FROM agent_runs WHERE id = '${HELD}' FOR UPDATE`);
  };
  const statuses = (ids: readonly string[]): Promise<string[]> =>
    Promise.all(ids.map(async (id) => (await loaded(store, id)).status));
  const all = async (ids: readonly string[], status: string): Promise<void> =>
    until(async () => (await statuses(ids)).every((one) => one === status), `${ids.join()} ${status}`, { everyMs: 10 });

  it('B120: takes over the other runs, and that one with the next pass', async () => {
    await process();
    for (const id of IDS) await running(store, { id }, 'dead');
    await beat(store, 'dead', 1);
    await hold();
    // As many passes as it likes: none of them is the last one for a run that was left out.
    for (const _pass of upTo(2)) await engine.recovery.reconcile();
    await all(OTHERS, 'completed');
    expect(await loaded(store, HELD)).toMatchObject({ status: 'running', attempt: 1 });
    await holder.commitTransaction();
    await engine.recovery.reconcile();
    await all([HELD], 'completed');
    for (const id of IDS) {
      expect(await loaded(store, id)).toMatchObject({ attempt: 2, recoveries: 1 });
      expect(await entriesOf(store, id, 'run.lease_expired')).toHaveLength(1);
    }
  });

  it('B120: ends the other runs whose deadline has passed, and that one with the next pass', async () => {
    await process();
    engine.worker.pause();
    for (const id of IDS) await submit(store, { id, deadlineAt: 1 });
    await hold();
    await engine.recovery.reconcile();
    expect(await statuses(OTHERS)).toEqual(OTHERS.map(() => 'timed_out'));
    expect((await loaded(store, HELD)).status).toBe('pending');
    expect(engine.worker.status().state).not.toBe('failed');
    await holder.commitTransaction();
    await engine.recovery.reconcile();
    expect((await loaded(store, HELD)).status).toBe('timed_out');
    for (const id of IDS) expect(await entriesOf(store, id, 'run.timed_out')).toHaveLength(1);
  });
});
