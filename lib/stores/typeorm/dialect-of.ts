/** The dialect of a kind of database. */
import type { DatabaseType, Dialect } from './dialect.js';
import { mysqlDialect } from './mysql/mysql.dialect.js';
import { postgresDialect } from './postgres/postgres.dialect.js';
import { sqliteDialect } from './sqlite/sqlite.dialect.js';

/** @param schema where the host keeps its tables, on Postgres */
export function dialectOf(type: DatabaseType, schema?: string): Dialect {
  switch (type) {
    case 'better-sqlite3':
      return sqliteDialect;
    case 'mysql':
    case 'mariadb':
      return mysqlDialect(type);
    case 'postgres':
      return postgresDialect(schema);
  }
}
