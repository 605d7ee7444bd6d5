import type { TypeOrmModuleOptions } from '@nestjs/typeorm';
import type { DatabaseSettings } from '../settings/settings.js';
import { CreateSupportTables1764400000000 } from './create-support-tables.migration.js';

/** The application's own connection. Agent runs use it too, and bring tables of their own. */
export function databaseOptions(database: DatabaseSettings): TypeOrmModuleOptions {
  const options = {
    autoLoadEntities: true,
    migrations: [CreateSupportTables1764400000000],
    migrationsRun: true,
    // TypeORM's own table of migrations has no lock: of two processes that start on a new database, one may find it half made.
    retryAttempts: 5,
    retryDelay: 500,
  };
  switch (database.type) {
    case 'sqlite':
      return {
        ...options,
        type: 'better-sqlite3',
        database: database.file,
        prepareDatabase: (connection: { pragma(text: string): unknown }) => {
          connection.pragma('journal_mode = WAL');
          // In WAL mode the driver's default is NORMAL: a power cut may lose the last commits.
          connection.pragma('synchronous = FULL');
        },
      };
    case 'mysql':
      return { ...options, type: 'mysql', url: database.url, charset: 'utf8mb4', timezone: 'Z', poolSize: 10 };
    case 'postgres':
      return { ...options, type: 'postgres', url: database.url, poolSize: 10 };
  }
}
