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
  owner: string;
  heartbeatAt?: Date;
  expiresAt?: Date;
}

/** An earlier generation of a restarted run. */
export interface PreviousGeneration {
  status: RunStatus;
  output?: JsonValue;
  error?: RunError;
  turns: number;
  usage: UsageTotals;
  startedAt?: Date;
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
  id: string;
  agent: string;
  version: string;
  status: RunStatus;
  phase: RunPhase;
  waitingFor?: WaitReason[];
  attention?: Attention;
  sessionId?: string;
  /** Who started it. */
  actor?: Actor;
  attempt: number;
  sequence: number;
  /** Model operations begun so far. */
  turn: number;
  usage: UsageTotals;
  metadata?: RunMetadata;
  nextAttemptAt?: Date;
  createdAt: Date;
  updatedAt: Date;
  startedAt?: Date;
  finishedAt?: Date;
}

/** A run as callers of `RunService` and HTTP see it. Points in time are `Date`s, which JSON shows as ISO 8601 text. */
export interface Run extends RunSummaryView {
  requestId?: string;
  budget?: { maxTotalTokens: number };
  /** The answer's text, or the parsed value of an agent with an output schema. */
  output?: JsonValue;
  error?: RunError;
  /** The open ones. */
  interactions: InteractionView[];
  definitionHash: string;
  contractVersion: number;
  restarts: number;
  /** Oldest first; empty for a run that was never restarted. */
  previousGenerations: PreviousGeneration[];
  recoveries: number;
  deadline?: Date;
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
  run: Run;
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
  consumed: number;
  /** Absent without a limit; 0 when overshot. */
  remaining?: number;
  grants: { amount: number; by: string; note?: string; at: Date }[];
}

/** A page of the events of a run. */
export interface EventPage<Event = RunEvent> {
  events: Event[];
  /** Give it as `after` next. */
  nextCursor: number;
}

/** An agent that is registered in this process, with all its versions. */
export interface AgentDescription {
  name: string;
  versions: {
    version: string;
    hash: string;
    tools: { name: string; version: string; recovery: RecoveryPolicy; approval: 'none' | 'rule' }[];
  }[];
}

/** What the worker of this process does. */
export interface WorkerStatus {
  state: 'ready' | 'degraded' | 'failed' | 'draining' | 'paused' | 'off';
  workerId: string;
  /** Executed in this process, those that wait included. */
  activeRuns: number;
  /** Of these, how many have a tool that waits for another run; they take no slot. */
  waitingRuns: number;
  maxConcurrentRuns: number;
  lastHeartbeatAt?: Date;
  /** The first failure of a `failed` worker, or the latest trouble of a `degraded` one. */
  reason?: RecordedText;
}
