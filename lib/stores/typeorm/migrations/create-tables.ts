import { COLUMN_TYPES } from '../agent-runs-entities.js';
import type { DatabaseType, Dialect } from '../dialect.js';
import { type ColumnDefinition, type IndexDefinition, type TableDefinition, TABLES } from '../tables.js';

/**
 * The statements that make all tables as their definitions say. MySQL has no CREATE INDEX IF NOT EXISTS, so its indexes
 * stand in the tables.
 */
export function createTables({ type, qualify }: Pick<Dialect, 'type' | 'qualify'>): string[] {
  return TABLES.flatMap((table) => {
    const isMysql = type === 'mysql' || type === 'mariadb';
    const parts = [
      ...table.columns.map((column) => `${column.name} ${columnType(type, column)}`),
      `PRIMARY KEY (${table.columns.flatMap(({ name, isPrimary }) => (isPrimary ? [name] : [])).join(', ')})`,
      ...(isMysql ? table.indexes.map(mysqlIndex) : []),
    ];
    const create = `CREATE TABLE IF NOT EXISTS ${qualify(table.table)} (${parts.join(', ')})${tableOptions(type, table)}`;
    return [
      create,
      ...(isMysql ? [] : table.indexes.map((index) => createIndex(type, qualify(table.table), index))),
      ...(type === 'postgres'
        ? (table.correlated ?? []).map((columns) => createStatistics(qualify, table, columns))
        : []),
    ];
  });
}

function columnType(type: DatabaseType, { holds, isNullable }: ColumnDefinition): string {
  const { type: name, length, charset, collation } = COLUMN_TYPES[type][holds];
  return [
    `${String(name)}${length === undefined ? '' : `(${length})`}`,
    ...(charset === undefined ? [] : [`CHARACTER SET ${charset}`]),
    ...(collation === undefined ? [] : [`COLLATE ${type === 'postgres' ? `"${collation}"` : collation}`]),
    isNullable ? 'NULL' : 'NOT NULL',
  ].join(' ');
}

function tableOptions(type: DatabaseType, { table }: TableDefinition): string {
  switch (type) {
    case 'mysql':
    case 'mariadb':
      return ' ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';
    case 'postgres':
      // Every run passes through the indexes that workers poll and is dead there afterwards: it is vacuumed sooner.
      return table === 'agent_runs' ? ' WITH (autovacuum_vacuum_scale_factor = 0.02)' : '';
    case 'better-sqlite3':
      return '';
  }
}

function mysqlIndex({ name, columns, isUnique }: IndexDefinition): string {
  return `${isUnique ? 'UNIQUE ' : ''}KEY ${name} (${columns.join(', ')})`;
}

function createIndex(
  type: 'postgres' | 'better-sqlite3',
  table: string,
  { name, columns, isUnique, where = {} }: IndexDefinition,
): string {
  const condition = where[type] === undefined ? '' : ` WHERE ${where[type]}`;
  return `CREATE ${isUnique ? 'UNIQUE ' : ''}INDEX IF NOT EXISTS ${name} ON ${table} (${columns.join(', ')})${condition}`;
}

/** Most common values of the columns together (Postgres 12). */
function createStatistics(qualify: Dialect['qualify'], { table }: TableDefinition, columns: readonly string[]): string {
  const name = qualify([table, ...columns].join('_'));
  return `CREATE STATISTICS IF NOT EXISTS ${name} (mcv) ON ${columns.join(', ')} FROM ${qualify(table)}`;
}
