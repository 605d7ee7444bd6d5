/** What each error of a database means for the store: a wrong verdict either stops a worker for good, or repeats for ever what can never pass. */
import { QueryRunnerAlreadyReleasedError } from 'typeorm';
import { forCaller } from '../../../lib/stores/typeorm/database-failure.js';
import { isMysqlError, mysqlFailure } from '../../../lib/stores/typeorm/mysql/mysql-connection.js';
import { isPostgresError, postgresFailure } from '../../../lib/stores/typeorm/postgres/postgres-connection.js';
import { sqliteFailure } from '../../../lib/stores/typeorm/sqlite/sqlite-session.js';

const thrown = (facts: object, message = 'said the driver, with a value in it'): Error =>
  Object.assign(new Error(message), facts);

type Case = [what: string, error: unknown, verdict: string, isConnectionLost: boolean];

const MYSQL: Case[] = [
  ['a deadlock', thrown({ errno: 1213, code: 'ER_LOCK_DEADLOCK' }), 'conflict', false],
  ['a lock wait timeout', thrown({ errno: 1205, code: 'ER_LOCK_WAIT_TIMEOUT' }), 'conflict', false],
  ['a record that changed since it was read', thrown({ errno: 1020, code: 'ER_CHECKREAD' }), 'conflict', false],
  ['a table that was altered meanwhile', thrown({ errno: 1412, code: 'ER_TABLE_DEF_CHANGED' }), 'conflict', false],
  ['a statement to be prepared again', thrown({ errno: 1615, code: 'ER_NEED_REPREPARE' }), 'conflict', false],
  ['a server that shuts down', thrown({ errno: 1053, code: 'ER_SERVER_SHUTDOWN' }), 'unavailable', true],
  ['a killed connection', thrown({ errno: 1927, code: 'ER_CONNECTION_KILLED' }), 'unavailable', true],
  [
    'an idle connection that the server ended',
    thrown({ errno: 4031, code: 'ER_CLIENT_INTERACTION_TIMEOUT' }),
    'unavailable',
    true,
  ],
  ['a server that could not read on', thrown({ errno: 1159, code: 'ER_NET_READ_INTERRUPTED' }), 'unavailable', true],
  ['a forgotten prepared statement', thrown({ errno: 1243, code: 'ER_UNKNOWN_STMT_HANDLER' }), 'unavailable', true],
  ['a lost connection', thrown({ code: 'PROTOCOL_CONNECTION_LOST', fatal: true }), 'unavailable', true],
  ['a refused connection', thrown({ errno: -111, code: 'ECONNREFUSED', fatal: true }), 'unavailable', true],
  [
    'a login that is refused',
    thrown({ errno: 1045, code: 'ER_ACCESS_DENIED_ERROR', fatal: true }),
    'unavailable',
    true,
  ],
  ['too many connections', thrown({ errno: 1040, code: 'ER_CON_COUNT_ERROR' }), 'unavailable', false],
  ['too many connections of this user', thrown({ errno: 1226, code: 'ER_USER_LIMIT_REACHED' }), 'unavailable', false],
  [
    'too many prepared statements',
    thrown({ errno: 1461, code: 'ER_MAX_PREPARED_STMT_COUNT_REACHED' }),
    'unavailable',
    false,
  ],
  ['a full disk', thrown({ errno: 1021, code: 'ER_DISK_FULL' }), 'unavailable', false],
  [
    'a primary that became read-only',
    thrown({ errno: 1290, code: 'ER_OPTION_PREVENTS_STATEMENT' }),
    'unavailable',
    false,
  ],
  [
    'a read-only transaction after a failover',
    thrown({ errno: 1792, code: 'ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION' }),
    'unavailable',
    false,
  ],
  ['a node that is not ready', thrown({ errno: 1047, code: 'ER_UNKNOWN_COM_ERROR' }), 'unavailable', false],
  ['a closed pool', thrown({}, 'Pool is closed.'), 'unavailable', false],
  [
    'a packet that is too large',
    thrown({ errno: 1153, code: 'ER_NET_PACKET_TOO_LARGE', fatal: true }),
    'too_large',
    false,
  ],
  ['a table that is missing', thrown({ errno: 1146, code: 'ER_NO_SUCH_TABLE' }), 'out_of_reach', false],
  ['a privilege that is missing', thrown({ errno: 1142, code: 'ER_TABLEACCESS_DENIED_ERROR' }), 'out_of_reach', false],
  ['a column that is missing', thrown({ errno: 1054, code: 'ER_BAD_FIELD_ERROR' }), 'broken', false],
];

const POSTGRES: Case[] = [
  ['a serialisation failure', thrown({ code: '40001' }), 'conflict', false],
  ['a deadlock', thrown({ code: '40P01' }), 'conflict', false],
  ['a lock that is not available', thrown({ code: '55P03' }), 'conflict', false],
  ['a server that shuts down', thrown({ code: '57P01' }), 'unavailable', true],
  ['a server that crashed', thrown({ code: '57P02' }), 'unavailable', true],
  ['a server that starts up', thrown({ code: '57P03' }), 'unavailable', true],
  ['a session that was idle for too long', thrown({ code: '57P05' }), 'unavailable', true],
  ['a transaction that was idle for too long', thrown({ code: '25P03' }), 'unavailable', true],
  ['a transaction that was open for too long', thrown({ code: '25P04' }), 'unavailable', true],
  ['a cancelled statement', thrown({ code: '57014' }), 'unavailable', false],
  ['a connection failure', thrown({ code: '08006' }), 'unavailable', true],
  ['a refused connection', thrown({ code: 'ECONNREFUSED' }), 'unavailable', true],
  ['a connection that ended under a query', new Error('Connection terminated unexpectedly'), 'unavailable', true],
  [
    'a client that has failed before',
    new Error('Client has encountered a connection error and is not queryable'),
    'unavailable',
    true,
  ],
  ['a login that is refused', thrown({ code: '28P01' }), 'unavailable', false],
  ['a database that is not there', thrown({ code: '3D000' }), 'unavailable', false],
  ['too many connections', thrown({ code: '53300' }), 'unavailable', false],
  ['a full disk', thrown({ code: '53100' }), 'unavailable', false],
  ['a read-only server', thrown({ code: '25006' }), 'unavailable', false],
  ['a limit of the program', thrown({ code: '54000' }), 'too_large', false],
  ['a table that is missing', thrown({ code: '42P01' }), 'out_of_reach', false],
  ['a schema that is missing', thrown({ code: '3F000' }), 'out_of_reach', false],
  ['a privilege that is missing', thrown({ code: '42501' }), 'out_of_reach', false],
  ['a column that is missing', thrown({ code: '42703' }), 'broken', false],
  ['damaged data', thrown({ code: 'XX001' }), 'broken', false],
];

const SQLITE: Case[] = [
  ['a locked file', thrown({ code: 'SQLITE_BUSY' }), 'conflict', false],
  ['a snapshot that is too old', thrown({ code: 'SQLITE_BUSY_SNAPSHOT' }), 'conflict', false],
  ['a full disk', thrown({ code: 'SQLITE_FULL' }), 'unavailable', false],
  ['a read-only file', thrown({ code: 'SQLITE_READONLY' }), 'unavailable', false],
  ['a text that is too large', thrown({ code: 'SQLITE_TOOBIG' }), 'too_large', false],
  ['a damaged file', thrown({ code: 'SQLITE_CORRUPT' }), 'broken', false],
];

describe.each([
  ['MySQL and MariaDB', MYSQL, mysqlFailure],
  ['Postgres', POSTGRES, postgresFailure],
  ['SQLite', SQLITE, sqliteFailure],
])('an error of %s', (_, cases, failureOf) => {
  it.each(cases)('STO-4: that tells of %s', (_what, error, verdict, isConnectionLost) => {
    const failure = failureOf(error);
    expect(failure.verdict).toBe(verdict);
    expect(failure.isConnectionLost).toBe(isConnectionLost);
    const told = forCaller(failure, 'append') as Error & { code: string; retryable: boolean };
    expect(told.code).toBe(
      {
        conflict: 'STORE_CONFLICT',
        unavailable: 'STORE_UNAVAILABLE',
        too_large: 'PAYLOAD_TOO_LARGE',
        out_of_reach: 'STORE_UNAVAILABLE',
        broken: 'STORE_BROKEN',
      }[verdict],
    );
    expect(told.retryable).toBe(['conflict', 'unavailable', 'out_of_reach'].includes(verdict));
    expect(told.message).not.toContain('with a value in it');
    expect(told.message.includes('file is damaged')).toBe(failure.databaseCode === 'SQLITE_CORRUPT');
  });
});

it("decision a-tool-in-a-transaction: errors of the host's own code are not taken for the database's", () => {
  for (const error of [new Error('no seat'), new TypeError('x is undefined'), 'text', null, undefined]) {
    expect(isMysqlError(error)).toBe(false);
    expect(isPostgresError(error)).toBe(false);
  }
});

it("decision a-tool-in-a-transaction: what a driver says of a session that has ended is known for the database's, though it has no code", () => {
  const closed = thrown({ fatal: true }, "Can't add new command when connection is in closed state");
  expect([isMysqlError(closed), mysqlFailure(closed).isConnectionLost]).toEqual([true, true]);
  for (const message of ['Connection terminated unexpectedly', new QueryRunnerAlreadyReleasedError().message]) {
    const error = new Error(message);
    expect([message, isPostgresError(error), postgresFailure(error).isConnectionLost]).toEqual([message, true, true]);
  }
});
