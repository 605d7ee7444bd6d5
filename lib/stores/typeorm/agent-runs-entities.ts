import { EntitySchema, type EntitySchemaColumnOptions, type EntitySchemaIndexOptions } from 'typeorm';
import type { DatabaseType } from './dialect.js';
import { type ColumnDefinition, type ColumnHolds, type IndexDefinition, TABLES } from './tables.js';

/** Our tables as TypeORM entities, for hosts that want to read them with repositories and query builders. */
type ColumnType = Pick<EntitySchemaColumnOptions, 'type' | 'length' | 'charset' | 'collation'>;

/**
 * Entities that describe the tables exactly as they are on a kind of database, so that a host which adds them to its `entities` gets no migration out of it.
 * Columns keep their names; times and counts are numbers, JSON columns are text. Read only: runs are changed through `RunService`.
 *
 * On MariaDB the data source itself must have the type `mariadb`: with `mysql` TypeORM takes the default of every nullable column there for another one, in
 * entities of your own too, and generates changes.
 *
 * Adding them is a choice, never needed. With them in `entities`, `synchronize: true` would take part in the tables' fate: leave it off.
 */
export function agentRunsEntities(type: DatabaseType): EntitySchema<Record<string, unknown>>[] {
  return TABLES.map(
    ({ table, entity, columns, indexes }) =>
      new EntitySchema<Record<string, unknown>>({
        name: entity,
        tableName: table,
        columns: Object.fromEntries(columns.map((column) => [column.name, columnOptions(type, column)])),
        indices: indexes.map((index) => indexOptions(type, index)),
      }),
  );
}

function columnOptions(
  type: DatabaseType,
  { name, holds, isPrimary, isNullable }: ColumnDefinition,
): EntitySchemaColumnOptions {
  return {
    ...COLUMN_TYPES[type][holds],
    name,
    ...(isPrimary && { primary: true }),
    ...(isNullable && { nullable: true }),
    // Bigints come as text from some drivers; ours fit a double (STO-5).
    ...(NUMERIC.has(holds) && { transformer: NUMBERS }),
  };
}

const NUMERIC: ReadonlySet<ColumnHolds> = new Set(['flag', 'count', 'number', 'time']);

const NUMBERS = {
  to: (value: number | null) => value,
  from: (value: unknown) => (value === null || value === undefined ? null : Number(value)),
};

function indexOptions(
  type: DatabaseType,
  { name, columns, isUnique, where = {} }: IndexDefinition,
): EntitySchemaIndexOptions {
  const condition = type === 'postgres' || type === 'better-sqlite3' ? where[type] : undefined;
  return {
    name,
    columns: [...columns],
    unique: isUnique === true,
    ...(condition !== undefined && { where: condition }),
  };
}

const SQLITE_TYPES: Record<ColumnHolds, ColumnType> = {
  key: { type: 'varchar', length: 191 },
  value: { type: 'varchar', length: 191 },
  word: { type: 'varchar', length: 32 },
  flag: { type: 'integer' },
  count: { type: 'integer' },
  number: { type: 'bigint' },
  time: { type: 'bigint' },
  json: { type: 'text' },
  payload: { type: 'text' },
};

const ASCII = { charset: 'ascii', collation: 'ascii_bin' };
const UNICODE = { charset: 'utf8mb4', collation: 'utf8mb4_bin' };

const MYSQL_TYPES: Record<ColumnHolds, ColumnType> = {
  key: { type: 'varchar', length: 191, ...ASCII },
  value: { type: 'varchar', length: 191, ...UNICODE },
  word: { type: 'varchar', length: 32, ...ASCII },
  flag: { type: 'int' },
  count: { type: 'int' },
  number: { type: 'bigint' },
  time: { type: 'bigint' },
  json: { type: 'longtext', ...UNICODE },
  payload: { type: 'longtext', ...UNICODE },
};

const POSTGRES_TYPES: Record<ColumnHolds, ColumnType> = {
  key: { type: 'character varying', length: 191, collation: 'C' },
  value: { type: 'character varying', length: 191, collation: 'C' },
  word: { type: 'character varying', length: 32, collation: 'C' },
  flag: { type: 'integer' },
  count: { type: 'integer' },
  number: { type: 'bigint' },
  time: { type: 'bigint' },
  json: { type: 'text' },
  payload: { type: 'text' },
};

/** How each database says what a column holds. */
export const COLUMN_TYPES: Record<DatabaseType, Record<ColumnHolds, ColumnType>> = {
  'better-sqlite3': SQLITE_TYPES,
  mysql: MYSQL_TYPES,
  mariadb: MYSQL_TYPES,
  postgres: POSTGRES_TYPES,
};
