/** Picks the twin for a data source. */
import type { DataSource } from 'typeorm';
import { InvalidConfigurationError } from '../../errors/configuration.errors.js';
import { ConflictCounter } from './conflict-counter.js';
import { MysqlDriver } from './mysql/mysql-driver.js';
import { PooledDatabase } from './pooled/pooled-database.js';
import { PostgresDriver } from './postgres/postgres-driver.js';
import type { RunDatabase } from './run-database.js';
import { SqliteDatabase } from './sqlite/sqlite-database.js';

/** @throws InvalidConfigurationError for a database that is not supported */
export function databaseOf(dataSource: DataSource, timeoutMs: number, conflicts = new ConflictCounter()): RunDatabase {
  const { type } = dataSource.options;
  switch (type) {
    case 'better-sqlite3':
      return new SqliteDatabase(dataSource, timeoutMs, conflicts);
    case 'mysql':
    case 'mariadb':
      return new PooledDatabase(dataSource, new MysqlDriver(dataSource), timeoutMs, conflicts);
    case 'postgres':
      return new PooledDatabase(dataSource, new PostgresDriver(dataSource, timeoutMs), timeoutMs, conflicts);
    default:
      throw new InvalidConfigurationError([
        `The data source is of type ${type}, on which runs cannot be stored. Use better-sqlite3, mysql, mariadb or postgres.`,
      ]);
  }
}
