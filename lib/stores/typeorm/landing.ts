/** What a transaction of ours did, and by which row that can be recognised if the answer to its COMMIT is lost. */
import type { WrittenRow } from './journal-row.js';

export interface Landing<T> {
  readonly value: T;
  /** Null: it appended nothing. */
  readonly row: WrittenRow | null;
}
