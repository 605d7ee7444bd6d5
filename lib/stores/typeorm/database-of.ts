import type { DataSource } from 'typeorm';
import { InvalidConfigurationError } from '../../errors/configuration.errors.js';
import { ConflictCounter } from './database-failure.js';
import type { DatabaseType, Dialect } from './dialect.js';
import { MysqlDriver } from './mysql/mysql-driver.js';
import { mysqlDialect } from './mysql/mysql.dialect.js';
import { PooledDatabase } from './pooled/pooled-database.js';
import { PostgresDriver } from './postgres/postgres-driver.js';
import { postgresDialect } from './postgres/postgres.dialect.js';
import type { RunDatabase } from './run-database.js';
import { SqliteDatabase } from './sqlite/sqlite-database.js';
import { sqliteDialect } from './sqlite/sqlite.dialect.js';

/**
 * Picks the database for a data source.
 *
 * @throws InvalidConfigurationError for a database that is not supported
 */
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

/**
 * The dialect of a kind of database.
 *
 * @param schema see `schemaOf`; absent: the session's current one
 */
export function dialectOf(type: DatabaseType, schema?: string): Dialect {
  switch (type) {
    case 'better-sqlite3':
      return sqliteDialect;
    case 'mysql':
    case 'mariadb':
      return mysqlDialect(type, schema);
    case 'postgres':
      return postgresDialect(schema);
  }
}
