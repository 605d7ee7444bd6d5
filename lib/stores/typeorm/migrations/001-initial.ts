/** Version 1: all tables. */
import { INITIAL_SQLITE } from './001-initial.sqlite.js';
import type { SchemaStep } from './schema-step.js';

export const initialStep: SchemaStep = {
  version: 1,
  minReader: 1,
  timestamp: 1_795_000_000_000,
  statements: ({ type }) => {
    switch (type) {
      case 'better-sqlite3':
        return INITIAL_SQLITE;
      default:
        throw new Error(`No schema for ${type} yet.`);
    }
  },
};
