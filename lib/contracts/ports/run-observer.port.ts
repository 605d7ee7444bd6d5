import type { JournalEntryType } from '../journal-entry.js';

export interface LifecycleEvent {
  runId: string;
  sequence: number;
  type: JournalEntryType;
  at: Date;
  agent: string;
  version: string;
  sessionId: string | null;
  /** Id of who started the run. */
  actor: string | null;
  /** Chosen facts: keys, attempts, codes, counts; never prompts, arguments or results. Points in time are ISO 8601 text. */
  details: Record<string, string | number | boolean | null>;
}

/**
 * Is told what this process committed, after the commit: each entry at most once, those of one run in the order of their sequences, without content. An entry
 * is not told at all when the process ends between the commit and the call, or when the answer to the commit was lost; the sequences show the gap, and the
 * run's events have the entry. An observer that throws or rejects is logged and changes nothing.
 */
export interface RunObserver {
  onEvent(event: LifecycleEvent): void | Promise<void>;
}
