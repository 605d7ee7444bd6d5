import { InvalidConfigurationError } from '../../../errors/configuration.errors.js';
import { NewerSchemaError } from '../../../errors/store.errors.js';
import type { Dialect } from '../dialect.js';
import { type Program, queryOne, write } from '../program.js';
import { createTables } from './create-tables.js';

/**
 * A version of the schema and the statements that lead to it from the one before. Steps are never changed once released;
 * the next one is added, and the first one leaves out what it adds.
 */
export interface SchemaStep {
  /** From 1. */
  readonly version: number;
  /** The lowest schema version a package must know to work with tables of this version; lower than `version` where the change only adds. */
  readonly minReader: number;
  /** For TypeORM's migration runner: the class name's ending, epoch ms. */
  readonly timestamp: number;
  /** Each may run again without harm. */
  statements(dialect: Pick<Dialect, 'type' | 'qualify'>): readonly string[];
}

/** All versions of the schema, in order. */
export const SCHEMA_STEPS: readonly SchemaStep[] = [
  { version: 1, minReader: 1, timestamp: 1_795_000_000_000, statements: createTables },
];

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

/**
 * The version is read again under the lock, so of several processes that start at once one migrates and the others find
 * it done. Each step is recorded as soon as it is done.
 */
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
