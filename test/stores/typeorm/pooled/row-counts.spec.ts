/** What a driver counts as affected: rows that were found, or only those that were changed. B121. */
import type { DataSource, DataSourceOptions } from 'typeorm';
import { TypeOrmRunStore } from '../../../../lib/stores/typeorm/typeorm-run.store.js';
import {
  appendNotes,
  beat,
  change,
  claim,
  loaded,
  OFFER,
  settleInSession,
  submit,
  upTo,
} from '../../../../packages/contract/lib/scenario.js';
import { describeServers, ServerSubject } from '../server-subject.js';

/** The server's clock, as MariaDB's sessions can be told. */
const FROZEN_MS = 1_790_000_000_001;

describeServers('the counts of the driver on %s', (type) => {
  let subject: ServerSubject;

  beforeEach(async () => {
    subject = await ServerSubject.create(type);
  }, 60_000);
  afterEach(() => subject.dispose(), 60_000);
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  const counting: [what: string, options: Partial<DataSourceOptions>][] =
    type === 'postgres'
      ? [['what an UPDATE found', {}]]
      : [
          ['found rows', { flags: ['+FOUND_ROWS'] }],
          ['changed rows', { flags: ['-FOUND_ROWS'] }],
        ];

  it.each(counting)('B121: %s: what is written again as it is loses nothing and gains nothing', async (_, options) => {
    const { store } = await subject.open({}, options);
    await submit(store, { id: 'r', sessionId: 's' });
    // Many heartbeats in the same millisecond.
    await Promise.all(upTo(20).map(() => beat(store, 'w')));
    expect(await claim(store, 'r', 'w')).toBe(1);
    expect(await claim(store, 'r', 'other')).toBeNull();
    await Promise.all(upTo(20).map(() => beat(store, 'w')));
    const before = await loaded(store, 'r');
    await change(store, 'r', { status: before.status, owner: before.owner, activeMs: before.activeMs });
    await change(store, 'r', { status: before.status, owner: before.owner, activeMs: before.activeMs });
    expect(await loaded(store, 'r')).toMatchObject({ status: 'running', owner: 'w', attempt: 1 });
    await appendNotes(store, 'r', 1, ['a']);
    const [first, second] = await Promise.allSettled([
      settleInSession(store, 'r', 'completed'),
      settleInSession(store, 'r', 'completed'),
    ]);
    expect([first.status, second.status].sort()).toEqual(['fulfilled', 'rejected']);
    await expect(appendNotes(store, 'r', 1, ['b'])).rejects.toMatchObject({ code: 'FENCED' });
  });

  if (type === 'mariadb') {
    it.each(counting)('B121: %s: with a clock that stands still', async (_, options) => {
      const dataSource = await subject.connect(options);
      await freeze(dataSource);
      const store = new TypeOrmRunStore(dataSource);
      await store.open();
      await submit(store, { id: 'r' });
      const beats = [];
      for (const _beat of upTo(3)) beats.push(await beat(store, 'w', 60_000));
      expect(new Set(beats.map(({ leaseExpiresAt }) => leaseExpiresAt))).toEqual(new Set([FROZEN_MS + 60_000]));
      expect(await claim(store, 'r', 'w')).toBe(1);
      for (const _time of upTo(3)) await change(store, 'r', { claimedAt: FROZEN_MS });
      for (const _beat of upTo(3)) await beat(store, 'w', 60_000);
      await appendNotes(store, 'r', 1, ['a']);
      await appendNotes(store, 'r', 1, ['a']);
      expect(await loaded(store, 'r')).toMatchObject({ status: 'running', attempt: 1, updatedAt: FROZEN_MS });
      const due = { offers: [OFFER], contractVersion: 1, limit: 10, takeovers: true, held: [] };
      expect((await store.due(due)).claimable).toEqual([]);
      await change(store, 'r', { status: 'completed', finishedAt: FROZEN_MS });
      await store.close();
      await dataSource.destroy();
    });
  }
});

/** For the connections that its pool makes from now on; it has one, idle. */
async function freeze(dataSource: DataSource): Promise<void> {
  const sql = `SET timestamp = ${FROZEN_MS / 1_000}`;
  const { pool } = dataSource.driver as unknown as {
    pool: { on(event: 'connection', listener: (connection: { query(sql: string): void }) => void): void };
  };
  pool.on('connection', (connection) => connection.query(sql));
  await dataSource.query(sql);
}
