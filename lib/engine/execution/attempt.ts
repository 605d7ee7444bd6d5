/** What an attempt of a run starts from, how it ends in this process, and whom it tells. */
import type { AgentDefinition } from '../../contracts/agent-definition.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { RunRecord } from '../../contracts/run.js';
import type { RunState } from '../journal/run-state.js';
import type { NextAction } from '../next-action.js';

/** How an attempt ended in this process. */
export type ExecutionEnd = 'settled' | 'suspended' | 'backing_off' | 'handed_over' | 'lost';

export interface ExecutionHooks {
  /** Entries became durable. */
  onCommitted(run: RunRecord, firstSequence: number, entries: readonly JournalEntry[]): void;
  /** Whether this process's lease still lasts; synchronous, asked before every effect. */
  leaseHeld(): boolean;
  /** How long this process has just stood still, in ms; 0 when it has not, or not for long. */
  standstillMs(): number;
  /** The store broke a promise: the worker must stop for good. */
  onBroken(error: Error): void;
  /** A session's next run became claimable, or this one will be after a delay. */
  onClaimable(runId: string, afterMs: number): void;
}

/** What an attempt starts from. */
export interface Claimed {
  run: RunRecord;
  agent: AgentDefinition;
  /** Folded up to and including the claim's entries. */
  state: RunState;
  /** The action whose intents were committed with the claim; null = decide now. */
  begun: NextAction | null;
  /** Messages wait in the inbox. */
  inboxWaiting: boolean;
}
