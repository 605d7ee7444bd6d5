// Opens what is to be measured. Each is a place of its own: nothing of the user's databases is read or changed.
import { mysqlDataSource, openMysql } from './databases/mysql.mjs';
import { openPostgres, postgresDataSource } from './databases/postgres.mjs';
import { openSqlite, sqliteDataSource } from './databases/sqlite.mjs';

const DATA_SOURCES = {
  sqlite: sqliteDataSource,
  mysql: mysqlDataSource,
  mariadb: mysqlDataSource,
  postgres: postgresDataSource,
};

/** Options of the data source of a process that is told of a database by `inOtherProcess`. */
export function dataSourceOf(told) {
  return DATA_SOURCES[told.key](told);
}

/** Each as a function, so that one is opened after the other. */
export function databasesOf(target, poolSize) {
  if (target === 'sqlite') return [() => openSqlite('FULL'), () => openSqlite('NORMAL')];
  if (target === 'sqlite-full') return [() => openSqlite('FULL')];
  if (target === 'sqlite-normal') return [() => openSqlite('NORMAL')];
  const url = URL.parse?.(target) ?? new URL(target);
  switch (url.protocol) {
    case 'mysql:':
    case 'mariadb:':
      return [() => openMysql(withProtocol(url, 'mysql:'), poolSize)];
    case 'postgres:':
    case 'postgresql:':
      return [() => openPostgres(url, poolSize)];
    default:
      throw new Error(`--db takes sqlite, mysql://…, mariadb://… or postgres://…, not ${target}.`);
  }
}

function withProtocol(url, protocol) {
  return new URL(url.href.replace(url.protocol, protocol));
}
