import { mysqlFailure } from '../../../../lib/stores/typeorm/mysql/mysql-connection.js';
import { postgresFailure } from '../../../../lib/stores/typeorm/postgres/postgres-connection.js';
import { appendNotes, claim, journal, notesOf, running, submit } from '../../../../packages/contract/lib/scenario.js';
import { describeIf } from '../../../support/describe-if.js';
import { isServerThere, ServerSubject } from '../server-subject.js';

describeIf(isServerThere('postgres'))('statements that were prepared on postgres', () => {
  afterAll(() => ServerSubject.dropDatabases(), 60_000);

  it("STO-4: and discarded by the host, or by a pooler, cost a connection and a repetition, not the store's trust in its tables", async () => {
    const subject = await ServerSubject.create('postgres');
    const { store, dataSource } = await subject.open({}, { poolSize: 1 });
    await running(store);
    await appendNotes(store, 'run-1', 1, ['before']);
    await dataSource.query('DISCARD ALL');
    await appendNotes(store, 'run-1', 1, ['after']);
    await submit(store, { id: 'run-2' });
    await dataSource.query('DEALLOCATE ALL');
    expect(await claim(store, 'run-2', 'worker-1')).toBe(1);
    expect(notesOf(await journal(store, 'run-1'))).toEqual(['before', 'after']);
    await subject.dispose();
  });
});

describe('failures around prepared statements', () => {
  it.each([
    [
      'a statement that the session does not know',
      { code: 'ER_UNKNOWN_STMT_HANDLER', errno: 1243 },
      'unavailable',
      true,
    ],
    [
      'more of them than the server allows',
      { code: 'ER_MAX_PREPARED_STMT_COUNT_REACHED', errno: 1461 },
      'unavailable',
      false,
    ],
    ['a table that was changed under one', { code: 'ER_NEED_REPREPARE', errno: 1615 }, 'conflict', false],
  ])('STO-4: on MariaDB and MySQL, %s passes', (_what, error, verdict, isConnectionLost) => {
    expect(mysqlFailure(error)).toMatchObject({ verdict, isConnectionLost });
  });

  it.each(['26000', '42P05'])('STO-4: on Postgres, code %s costs the connection', (code) => {
    expect(postgresFailure({ code })).toMatchObject({ verdict: 'unavailable', isConnectionLost: true });
  });
});
