// Opens what is to be measured. Each is a place of its own: nothing of the user's databases is read or changed.
import { openMysql } from './databases/mysql.mjs';
import { openPostgres } from './databases/postgres.mjs';
import { openSqlite, sqliteDataSource } from './databases/sqlite.mjs';

/** Options of the data source of a process that is told of a database by `inOtherProcess`. */
export function dataSourceOf(told) {
  return told.type === 'better-sqlite3' ? sqliteDataSource(told) : told;
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
