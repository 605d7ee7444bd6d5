/**
 * Group `schema`: which version the tables have, and how they are brought to ours. The version is read again under the lock, so of
 * several processes that start at once one migrates and the others find it done. Host databases migrated by TypeORM's runner get the same steps.
 */
import { InvalidConfigurationError } from '../../../errors/configuration.errors.js';
import { NewerSchemaError } from '../../../errors/store.errors.js';
import type { Dialect } from '../dialect.js';
import { queryOne, write, type Program } from '../program.js';
import type { SchemaStep } from './schema-step.js';

export interface SchemaState {
  /** Version of the tables; 0 = there are none. */
  version: number;
  /** The version a package must know to work with them. */
  minReader: number;
}

export function* readSchema(dialect: Dialect): Program<SchemaState> {
  if (!(yield* queryOne(dialect.hasSchemaTable))) return { version: 0, minReader: 0 };
  const row = yield* queryOne(
    `SELECT MAX(version) AS version, MAX(min_reader) AS min_reader FROM ${dialect.tables.schema}`,
  );
  return { version: Number(row?.['version'] ?? 0), minReader: Number(row?.['min_reader'] ?? 0) };
}

/**
 * Whether the tables can be worked with as they are. False: they are absent or older.
 * @throws NewerSchemaError
 */
export function isCurrent(state: SchemaState, steps: readonly SchemaStep[]): boolean {
  const known = latest(steps);
  if (state.minReader > known) {
    throw new NewerSchemaError(
      `The agent run tables of this database have schema version ${state.version}, which needs a package that knows version ${state.minReader}; this package knows version ${known}. Upgrade nestjs-agent-runs in this application.`,
      { details: { schemaVersion: state.version, minReader: state.minReader, knownVersion: known } },
    );
  }
  return state.version >= known;
}

/** Brings the tables to the last of the steps; each step is told as soon as it is done. Does nothing where they are there already. */
export function* migrateSchema(dialect: Dialect, steps: readonly SchemaStep[]): Program<void> {
  const state = yield* readSchema(dialect);
  if (isCurrent(state, steps)) return;
  for (const step of steps) {
    if (step.version <= state.version) continue;
    for (const statement of step.statements(dialect)) yield* write(statement, []);
    yield* write(`INSERT INTO ${dialect.tables.schema} (version, min_reader) VALUES (?, ?)`, [
      step.version,
      step.minReader,
    ]);
  }
}

/** For a store that must not migrate. @throws InvalidConfigurationError */
export function refuseToMigrate(state: SchemaState, steps: readonly SchemaStep[]): never {
  const found = state.version === 0 ? 'are missing' : `have schema version ${state.version}`;
  throw new InvalidConfigurationError([
    `The agent run tables of this database ${found}; this package needs version ${latest(steps)}. Add \`agentRunsMigrations(type)\` to the \`migrations\` of the data source and run them, or set \`migrate: true\` for the store.`,
  ]);
}

function latest(steps: readonly SchemaStep[]): number {
  return steps.at(-1)?.version ?? 0;
}
