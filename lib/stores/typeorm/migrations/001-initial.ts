/** Version 1: all tables. */
import { initialMysql } from './001-initial.mysql.js';
import { initialPostgres } from './001-initial.postgres.js';
import { INITIAL_SQLITE } from './001-initial.sqlite.js';
import type { SchemaStep } from './schema-step.js';

export const initialStep: SchemaStep = {
  version: 1,
  minReader: 1,
  timestamp: 1_795_000_000_000,
  statements: ({ type, qualify }) => {
    switch (type) {
      case 'better-sqlite3':
        return INITIAL_SQLITE;
      case 'mysql':
      case 'mariadb':
        return initialMysql(qualify);
      case 'postgres':
        return initialPostgres(qualify);
    }
  },
};
