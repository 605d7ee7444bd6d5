/** A version of the schema and the statements that lead to it from the one before. Steps are never changed once released; the next one is added. */
import type { Dialect } from '../dialect.js';

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
