/**
 * What a commit changes in the image, as data: the decisions are over, these are their effects. The memory store applies them; the file store also writes
 * them to disk and applies them again when it opens. Values in them are detached already.
 */
import type { InboxMessage, Interaction } from '../../contracts/interaction.js';
import type { RunChange, RunRecord, RunTotals, SessionRecord } from '../../contracts/run.js';

/** One journal row: the entries of one commit. */
export interface JournalRow {
  /** Sequence of the first entry. */
  first: number;
  /** How many entries. */
  count: number;
  attempt: number;
  /** The entries, a JSON array as text. */
  entries: string;
  /** Totals after these entries. */
  totals: RunTotals;
}

export type ImageChange =
  | { kind: 'run'; run: RunRecord }
  | { kind: 'header'; runId: string; change: RunChange & Partial<Pick<RunRecord, 'revision' | 'updatedAt' | 'totals'>> }
  | { kind: 'journal'; runId: string; row: JournalRow }
  | { kind: 'session'; session: SessionRecord }
  | { kind: 'interaction'; interaction: Interaction }
  | { kind: 'inbox'; message: InboxMessage };

/** A commit that is in the image. */
export interface ImageCommit {
  readonly changes: readonly ImageChange[];
  /** Takes it out again. Only ever the newest commit that is still in. */
  undo(): void;
}

/** What a write did: its answer, and its commit unless nothing was written. */
export interface Written<T> {
  value: T;
  commit: ImageCommit | null;
}
