// What a server is set to that would break runs later is refused when the store opens.
import { mysqlProblems, variablesOf } from '../../../../lib/stores/typeorm/mysql/mysql-driver.js';
import type { Row } from '../../../../lib/stores/typeorm/program.js';
import { TypeOrmRunStore } from '../../../../lib/stores/typeorm/typeorm-run.store.js';
import { appendNotes, journal, notesOf, running, submit } from '../../../../packages/contract/lib/scenario.js';
import { describeIf } from '../../../support/describe-if.js';
import { describeServers, isServerThere, ServerSubject } from '../server-subject.js';

afterAll(() => ServerSubject.dropDatabases(), 60_000);

describeServers('a server on %s that became a replica and kept its connections', (type) => {
  let subject: ServerSubject;
  beforeEach(async () => {
    subject = await ServerSubject.create(type);
  }, 60_000);
  afterEach(() => subject.dispose(), 60_000);

  it('STO-4: is left by a new connection, which may lead to the primary', async () => {
    const { store, dataSource } = await subject.open({}, { poolSize: 1 });
    const demote = (): Promise<unknown> =>
      dataSource.query(
        `SET SESSION ${type === 'postgres' ? 'CHARACTERISTICS AS TRANSACTION READ ONLY' : 'TRANSACTION READ ONLY'}`,
      );
    await demote();
    await expect(submit(store, { id: 'run-0' })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await running(store);
    await demote();
    await expect(appendNotes(store, 'run-1', 1, ['lost'])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await appendNotes(store, 'run-1', 1, ['kept']);
    expect(notesOf(await journal(store, 'run-1'))).toEqual(['kept']);
  });
});

describeIf(isServerThere('mariadb'))('the settings of a session on mariadb', () => {
  it.each([
    ['autocommit = 0', /has `autocommit` off/],
    [`sql_mode = 'ORACLE'`, /has the `sql_mode` ORACLE/],
  ])('CFG-1: %s is refused', async (setting, message) => {
    const subject = await ServerSubject.create('mariadb');
    const { dataSource } = await subject.open({}, { poolSize: 1 });
    await dataSource.query(`SET SESSION ${setting}`);
    const opening = new TypeOrmRunStore(dataSource).open();
    await expect(opening).rejects.toMatchObject({ code: 'INVALID_CONFIGURATION' });
    await expect(opening).rejects.toThrow(message);
    await subject.dispose();
  });

  it("CFG-1: no sql_mode at all, or all that are strict, are none of the store's business", async () => {
    const subject = await ServerSubject.create('mariadb');
    const { dataSource } = await subject.open({}, { poolSize: 1 });
    for (const mode of ['', 'ANSI,TRADITIONAL,NO_BACKSLASH_ESCAPES']) {
      await dataSource.query(`SET SESSION sql_mode = '${mode}'`);
      await new TypeOrmRunStore(dataSource).open();
    }
    await subject.dispose();
  });
});

describe('the binary log of a server', () => {
  const fine = { hex: 'F09F9880', max_packet: 16_777_216, autocommit: 1, sql_mode: '' };
  const problems = (found: Row): string[] => mysqlProblems({ ...fine, ...found }, { type: 'mysql' });

  it('CFG-1: of statements is refused, because InnoDB refuses the store then', () => {
    expect(problems({ log_bin: 'ON', binlog_format: 'STATEMENT' })).toEqual([
      expect.stringMatching(/`binlog_format` STATEMENT.*Set it to ROW or MIXED/),
    ]);
  });

  it('CFG-1: of rows, switched off or unknown is taken', () => {
    expect(problems({ log_bin: 'ON', binlog_format: 'MIXED' })).toEqual([]);
    expect(problems({ log_bin: 'OFF', binlog_format: 'STATEMENT' })).toEqual([]);
    expect(problems(variablesOf([{ Variable_name: 'log_bin', Value: 'ON' }]))).toEqual([]);
  });
});

describeIf(isServerThere('postgres'))('the encoding of a database on postgres', () => {
  const withEncoding = async (encoding: string, work: (store: TypeOrmRunStore) => Promise<void>): Promise<void> => {
    const subject = await ServerSubject.create('postgres');
    const database = `${subject.database}_${encoding.toLowerCase()}`;
    await subject.admin.query(
      `CREATE DATABASE ${database} ENCODING '${encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`,
    );
    const dataSource = await subject.connect({ database });
    await work(new TypeOrmRunStore(dataSource));
    await dataSource.destroy();
    await subject.admin.query(`DROP DATABASE ${database}`);
    await subject.dispose();
  };

  it('B125: that cannot hold an emoji is refused', async () => {
    await withEncoding('LATIN1', async (store) => {
      const opening = store.open();
      await expect(opening).rejects.toMatchObject({ code: 'INVALID_CONFIGURATION' });
      await expect(opening).rejects.toThrow(/encoding LATIN1.*ENCODING 'UTF8'/);
    });
  });

  it('B125: that keeps bytes as they come is taken', async () => {
    await withEncoding('SQL_ASCII', async (store) => {
      await store.open();
      await running(store);
      await appendNotes(store, 'run-1', 1, ['\u{1F600}', '\ud83d', '\0']);
      expect(notesOf(await journal(store, 'run-1'))).toEqual(['\u{1F600}', '\ud83d', '\0']);
      await store.close();
    });
  });
});
