import type { DataSource } from 'typeorm';

/**
 * The schema (Postgres) or database (MySQL, MariaDB) that every statement names, so that a pooled connection whose session somebody changed
 * (`SET search_path`, `USE`) cannot lead to other tables. It is what the options of the data source say; where they are silent, TypeORM has asked the first
 * session of its pool, before anybody could change it. Undefined: neither says it, or the database has none (SQLite).
 */
export function schemaOf({ driver, options }: Pick<DataSource, 'driver' | 'options'>): string | undefined {
  const found = driver as { schema?: string | null; searchSchema?: string | null; database?: string | null };
  switch (options.type) {
    case 'postgres':
      return found.schema ?? found.searchSchema ?? undefined;
    case 'mysql':
    case 'mariadb':
      return found.database ?? undefined;
    default:
      return undefined;
  }
}
