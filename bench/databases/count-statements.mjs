// Counts what a driver is asked, in the process that asks it.
import { StatementCounter, watchMethods } from '../statement-counter.mjs';

/** @param require resolves the driver that the application has */
export function countStatements(type, require) {
  const counter = new StatementCounter();
  const undo = WATCHED[type](require, counter);
  return { counter, stop: () => undo.forEach((put) => put()) };
}

const mysql = (require, counter) => [
  watchMethods(require('mysql2').Connection.prototype, ['query', 'execute'], (connection, [sql]) =>
    counter.seen(connection, textOf(sql)),
  ),
];

const WATCHED = {
  mysql,
  mariadb: mysql,
  postgres: (require, counter) => [
    watchMethods(require('pg').Client.prototype, ['query'], (client, [sql]) => counter.seen(client, textOf(sql))),
  ],
  'better-sqlite3': (require, counter) => {
    const handle = require('better-sqlite3')(':memory:');
    const statements = Object.getPrototypeOf(handle.prepare('SELECT 1'));
    return [
      watchMethods(statements, ['run', 'all', 'get'], (statement) =>
        counter.seen(statement.database, statement.source),
      ),
      watchMethods(Object.getPrototypeOf(handle), ['exec'], (database, [sql]) => counter.seen(database, sql)),
    ];
  },
};

function textOf(sql) {
  return typeof sql === 'string' ? sql : (sql.sql ?? sql.text ?? '');
}
