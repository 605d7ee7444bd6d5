/** Told of lifecycle entries after their commit: at least once, in order per run, without content. A failing observer changes nothing. */
import type { JournalEntryType } from '../journal-entry.js';

export interface LifecycleEvent {
  runId: string;
  sequence: number;
  type: JournalEntryType;
  at: number;
  agent: string;
  version: string;
  sessionId: string | null;
  /** Chosen facts: keys, attempts, codes, counts; never prompts, arguments or results. */
  details: Record<string, string | number | boolean | null>;
}

export interface RunObserver {
  onEvent(event: LifecycleEvent): void | Promise<void>;
}
