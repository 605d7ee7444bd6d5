/** The dialect of a kind of database. */
import type { DatabaseType, Dialect } from './dialect.js';
import { mysqlDialect } from './mysql/mysql.dialect.js';
import { postgresDialect } from './postgres/postgres.dialect.js';
import { sqliteDialect } from './sqlite/sqlite.dialect.js';

/** @param schema see `schemaOf`; absent: the session's current one */
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
