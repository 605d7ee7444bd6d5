import type { DataSourceOptions } from 'typeorm';

/** What the drivers of TypeORM take for their pool, and their default. */
const DRIVER_DEFAULT = 10;

/** Connections of a data source's pool; null where there is none (SQLite). */
export function connectionPoolSize(options: DataSourceOptions): number | null {
  if (/sqlite|sqljs|expo|capacitor/.test(options.type)) return null;
  const { poolSize, extra } = options as { poolSize?: number; extra?: { max?: number; connectionLimit?: number } };
  // `extra` is spread over what TypeORM sets, so it wins.
  return Number(extra?.connectionLimit ?? extra?.max ?? poolSize ?? DRIVER_DEFAULT);
}
