import type { CreateResult } from '../../../lib/contracts/ports/run-store.port.js';
import { submit } from '../../../packages/contract/lib/scenario.js';
import { until } from '../../support/until.js';
import { describeServers, ServerSubject } from './server-subject.js';
import { SqliteLockHolder } from './sqlite-lock-holder.js';
import { SqliteSubject } from './sqlite-subject.js';

describe('the count of conflicts on SQLite', () => {
  it('STO-3: tells how often the file was locked by another process', async () => {
    const subject = await SqliteSubject.create();
    try {
      const { store } = await subject.open();
      await submit(store, { id: 'run-1' });
      expect(store.conflicts()).toEqual({});
      const holder = await SqliteLockHolder.hold(subject.file);
      const submitted = submit(store, { id: 'run-2' });
      await until(() => Object.keys(store.conflicts()).length > 0);
      await holder.letGo();
      expect((await submitted).created).toBe(true);
      expect(store.conflicts()).toEqual({ SQLITE_BUSY: expect.any(Number) });
    } finally {
      await subject.dispose();
    }
  });
});

describeServers('the count of conflicts on %s', (type) => {
  let subject: ServerSubject;
  beforeEach(async () => (subject = await ServerSubject.create(type)), 60_000);
  afterEach(() => subject.dispose(), 60_000);
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  it('SUB-2: tells how often somebody else had the key first', async () => {
    const { store, dataSource } = await subject.open();
    const request = { requestScope: 'agent:support', requestId: 'the-same' };
    let late: Promise<CreateResult> | undefined;
    await dataSource.transaction(async (transaction) => {
      await submit(store, { id: 'run-1', ...request }, { transaction });
      late = submit(store, { id: 'run-2', ...request });
      await subject.waitForLockWait();
    });
    expect(await late).toMatchObject({ created: false, run: { id: 'run-1' } });
    expect(store.conflicts()).toEqual({ LOST_RACE: 1 });
  });
});
