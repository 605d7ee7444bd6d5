import type { Actor, RunError, RunMetadata } from './run.js';
import type { Interaction } from './interaction.js';
import type { JournalEntry, JournalEntryType } from './journal-entry.js';
import type { JsonValue } from './json.js';
import type { Operation, UsageTotals } from './operation.js';
import type { RecoveryPolicy } from './policies.js';
import type { Attention, RunPhase, RunStatus, WaitReason } from './run-status.js';
import type { RecordedText } from './text.js';

/** Who executes a run, and until when it is theirs unless they renew it. */
export interface RunLeaseView {
  /** Worker id. */
  owner: string;
  /** Last sign of life; absent when the owner's row is gone. */
  heartbeatAt?: Date;
  /** When others may take the run; absent = now. */
  expiresAt?: Date;
}

/** An earlier generation of a restarted run. */
export interface PreviousGeneration {
  /** The settled status it ended with. */
  status: RunStatus;
  /** Its answer; absent = it had none. */
  output?: JsonValue;
  /** Why it failed; absent = it did not. */
  error?: RunError;
  /** Model requests of this generation. */
  turns: number;
  /** Tokens of this generation. */
  usage: UsageTotals;
  /** Absent = it was never claimed. */
  startedAt?: Date;
  /** When it settled. */
  finishedAt?: Date;
}

/** An interaction, times as `Date`s. */
export type InteractionView = Omit<Interaction, 'createdAt' | 'expiresAt' | 'decidedAt'> & {
  createdAt: Date;
  expiresAt?: Date;
  decidedAt?: Date;
};

/** A run in a list. */
export interface RunSummaryView {
  /** Id of the run. */
  id: string;
  /** Name of the agent. */
  agent: string;
  /** Version of the agent. */
  version: string;
  /** As stored now. */
  status: RunStatus;
  /** Derived from the status. */
  phase: RunPhase;
  /** Present while it is `waiting`. */
  waitingFor?: WaitReason[];
  /** Present while it is `needs_attention`. */
  attention?: Attention;
  /** Absent = it has no session. */
  sessionId?: string;
  /** Who started it. */
  actor?: Actor;
  /** Claims so far; 0 = it was never claimed. */
  attempt: number;
  /** Of its last journal entry. */
  sequence: number;
  /** Model operations begun so far. */
  turn: number;
  /** Tokens so far. */
  usage: UsageTotals;
  /** As given to `start`; absent = none. */
  metadata?: RunMetadata;
  /** When a run in `retry_wait` goes on. */
  nextAttemptAt?: Date;
  /** When it was submitted. */
  createdAt: Date;
  /** Last change of its status or of what else its header says. */
  updatedAt: Date;
  /** When it was first claimed; absent = not yet. */
  startedAt?: Date;
  /** When it settled; absent = not yet. */
  finishedAt?: Date;
}

/** A run as callers of `RunService` and HTTP see it. Points in time are `Date`s, which JSON shows as ISO 8601 text. */
export interface Run extends RunSummaryView {
  /** The caller's idempotency key; absent = none was given. */
  requestId?: string;
  /** The limit in force; absent = none. */
  budget?: { maxTotalTokens: number };
  /** The answer's text, or the parsed value of an agent with an output schema. */
  output?: JsonValue;
  /** Why it failed; absent = it did not. */
  error?: RunError;
  /** The open ones. */
  interactions: InteractionView[];
  /** Over what the agent was when the run was started. */
  definitionHash: string;
  /** Version of the journal's form that it is written in. */
  contractVersion: number;
  /** How often it was started over. */
  restarts: number;
  /** Oldest first; empty for a run that was never restarted. */
  previousGenerations: PreviousGeneration[];
  /** Takeovers in a row without a committed result in between. */
  recoveries: number;
  /** After which it is `timed_out`; absent = never. */
  deadline?: Date;
  /** Present while it is `running`. */
  lease?: RunLeaseView;
  /** True on the answer to a start that met its own earlier request. */
  deduplicated?: true;
}

/** An operation of a run, times as `Date`s. */
export type OperationView = Omit<Operation, 'startedAt' | 'finishedAt'> & {
  /** Absent while it has not begun. */
  startedAt?: Date;
  finishedAt?: Date;
};

/** A run with its operations at one moment. */
export interface RunSnapshot {
  /** As `get` gives it. */
  run: Run;
  /** In the order in which they were begun. */
  operations: OperationView[];
  /** Sequence up to which this snapshot speaks: read events after it. */
  cursor: number;
}

/** A journal entry as a reader gets it, distinguished by its `type`. Readers ignore types they do not know. */
export type RunEvent = EventOf<JournalEntry>;

type EventOf<Entry> = Entry extends JournalEntry ? ReadEvent<Entry['type'], TimesAsText<Omit<Entry, 'type'>>> : never;

/** Points in time are ISO 8601 text. */
type TimesAsText<Entry> = {
  [K in keyof Entry]: K extends 'at' | `${string}At` ? (Entry[K] extends number ? string : string | null) : Entry[K];
};

/**
 * What `projection: 'lifecycle'` leaves of it: chosen facts such as keys, attempts, codes and counts, never content.
 */
export type LifecycleRunEvent = ReadEvent<JournalEntryType, Record<string, string | number | boolean | null>>;

interface ReadEvent<Type, Data> {
  /** The entry's sequence. */
  id: number;
  type: Type;
  /** `at` and all names that end in `At` are ISO 8601. */
  data: Data & { at: string };
}

/** An event of a stream. */
export type StreamedEvent<Event extends { id: unknown } = RunEvent> = Event extends { id: unknown }
  ? Omit<Event, 'id'> & {
      /** Where to read on, as `after` or `Last-Event-ID`: the entry's sequence as text. */
      id: string;
    }
  : never;

/** What a run may spend and has spent, in tokens. */
export interface BudgetStatus {
  /** Absent without a limit. */
  maxTotalTokens?: number;
  /** Tokens of all replies so far, failed attempts included. */
  consumed: number;
  /** Absent without a limit; 0 when overshot. */
  remaining?: number;
  /** Tokens that were added, oldest first. */
  grants: { amount: number; by: string; note?: string; at: Date }[];
}

/** A page of the events of a run. */
export interface EventPage<Event = RunEvent> {
  /** In the order in which they were committed. */
  events: Event[];
  /** Give it as `after` next. */
  nextCursor: number;
}

/** An agent that is registered in this process, with all its versions. */
export interface AgentDescription {
  /** The name in `@Agent`. */
  name: string;
  /** In ascending order, each with the hash of its definition and its tools. */
  versions: {
    version: string;
    hash: string;
    tools: { name: string; version: string; recovery: RecoveryPolicy; approval: 'none' | 'rule' }[];
  }[];
}

/** What the worker of this process does. */
export interface WorkerStatus {
  /** `degraded` while the store is in trouble, `failed` for good, `off` where `worker: false` was given. */
  state: 'ready' | 'degraded' | 'failed' | 'draining' | 'paused' | 'off';
  /** As in `owner` of the runs it executes. */
  workerId: string;
  /** Executed in this process, those that wait included. */
  activeRuns: number;
  /** Of these, how many have a tool that waits for another run; they take no slot. */
  waitingRuns: number;
  /** The option. */
  maxConcurrentRuns: number;
  /** Absent before the first one. */
  lastHeartbeatAt?: Date;
  /** The first failure of a `failed` worker, or the latest trouble of a `degraded` one. */
  reason?: RecordedText;
}
