import { DataSource, type DataSourceOptions } from 'typeorm';
import { TypeOrmRunStore } from '../../../../lib/stores/typeorm/typeorm-run.store.js';
import {
  appendNotes,
  beat,
  claim,
  journal,
  loaded,
  note,
  notesOf,
  running,
  submit,
  totalsOf,
} from '../../../../packages/contract/lib/scenario.js';
import { describeIf } from '../../../support/describe-if.js';
import { until } from '../../../support/until.js';
import { describeServers, isServerThere, ServerSubject, serverUrl, type ServerType } from '../server-subject.js';
import { TcpProxy } from '../tcp-proxy.js';

/** A data source whose reads go to replicas: databases that have none of our tables, so that whatever is asked of them fails. */
function withReplica(primary: ServerSubject, replica: string, more: object = {}, port?: number) {
  const { hostname, port: usual, username, password } = serverUrl(primary.type);
  const login = { host: hostname, port: port ?? Number(usual), username, password };
  const replication = {
    master: { ...login, database: primary.database },
    slaves: [{ ...login, database: replica }],
    defaultMode: 'slave',
    ...more,
  };
  return { replication } as Partial<DataSourceOptions>;
}

/** Without it, mysql2 gives a server up for good. */
const comingBack = (type: ServerType): object => (type === 'mariadb' ? { restoreNodeTimeout: 50 } : {});

describeServers('a data source with replicas on %s', (type) => {
  let subject: ServerSubject;
  const replica = type === 'mariadb' ? 'mysql' : 'postgres';

  beforeEach(async () => {
    subject = await ServerSubject.create(type);
  }, 60_000);
  afterEach(() => subject.dispose(), 60_000);
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  it('STO-3: is used for its primary alone, also by transactional tools and by runs that join a transaction', async () => {
    const { store, dataSource } = await subject.open({}, withReplica(subject, replica, comingBack(type)));
    await running(store);
    await appendNotes(store, 'run-1', 1, ['one']);
    await Promise.all(['a', 'b', 'c'].map((id) => submit(store, { id })));
    expect(await claim(store, 'a', 'worker-1')).toBe(1);
    await beat(store, 'worker-1');
    const tool = store.openToolTransaction();
    await tool.begin();
    await tool.commit({ runId: 'run-1', attempt: 1, firstSequence: 4, entries: [note('two')], totals: totalsOf(1) });
    expect(notesOf(await journal(store, 'run-1'))).toEqual(['one', 'two']);
    await dataSource.transaction((manager) => submit(store, { id: 'joined' }, { transaction: manager }));
    expect((await loaded(store, 'joined')).status).toBe('pending');
    expect((await store.list({ limit: 10 })).items).toHaveLength(5);
    expect((await store.interactions({ limit: 10 })).items).toEqual([]);
    expect((await store.metrics()).runsByStatus.pending).toBe(3);
    expect(await store.countPending(10)).toBe(3);
    expect(await store.liveWorkers()).toHaveLength(1);
    // That the replica would have been noticed: the host's own reads go there.
    await expect(dataSource.createQueryBuilder().select('id').from('agent_runs', 'r').getRawMany()).rejects.toThrow();
  });

  it('STO-4: is used again when its primary is back', async () => {
    const { hostname, port } = serverUrl(type);
    const proxy = await TcpProxy.to(hostname, Number(port));
    const host = await subject.open(
      { statementTimeoutMs: 1_000 },
      withReplica(subject, replica, comingBack(type), proxy.port),
    );
    await running(host.store);
    proxy.isRefusing = true;
    proxy.cut();
    await expect(loaded(host.store, 'run-1')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    proxy.isRefusing = false;
    const isBack = (): Promise<boolean> => loaded(host.store, 'run-1').then(Boolean, () => false);
    await until(isBack, 'an answer of the primary', { withinMs: 10_000, everyMs: 20 });
    await appendNotes(host.store, 'run-1', 1, ['again']);
    await subject.close(host);
    await proxy.close();
  });
});

describeIf(isServerThere('mariadb'))('a data source on mariadb whose driver would give up its primary for good', () => {
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  it('CFG-1: is refused, and what to set is said', async () => {
    const subject = await ServerSubject.create('mariadb');
    const options = { type: 'mariadb', charset: 'utf8mb4', ...withReplica(subject, 'mysql') } as DataSourceOptions;
    const dataSource = await new DataSource(options).initialize();
    const opening = new TypeOrmRunStore(dataSource).open();
    await expect(opening).rejects.toMatchObject({ code: 'INVALID_CONFIGURATION' });
    await expect(opening).rejects.toThrow(/Set `restoreNodeTimeout: 1000` \(ms\) in `replication`/);
    await dataSource.destroy();
    await subject.dispose();
  });
});
