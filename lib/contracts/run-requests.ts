import type { Actor, RunMetadata } from './run.js';
import type { Duration } from './duration.js';
import type { InteractionStatus } from './interaction.js';
import type { JsonObject, JsonValue } from './json.js';
import type { Message } from './message.js';
import type { AgentReference } from './agent-definition.js';
import type { RunPhase, RunStatus } from './run-status.js';

/**
 * A message of a prompt in its short form: plain text, or parts. Image and file data may be bytes; they are stored as
 * base64.
 */
export interface PromptMessage {
  /** Whose words these are. */
  role: 'user' | 'assistant' | 'system' | 'tool';
  /** Text, or parts. */
  content: string | PromptPart[];
}

/** A part of a message of a prompt. */
export type PromptPart =
  | { type: 'text'; text: string }
  | { type: 'image'; image: string | Uint8Array; mediaType?: string }
  | { type: 'file'; data: string | Uint8Array; mediaType: string; filename?: string };

/** What `start` takes. Every field is checked at run time: bodies reach these types unverified. */
export interface StartOptions {
  /** Name of the agent, or its class. */
  agent: AgentReference;
  /** Default: the highest registered. */
  version?: string;
  /** Exactly one of `prompt` and `messages`. Not blank. */
  prompt?: string;
  /** Ends with a user message. Calls in it are history and never executed. */
  messages?: (PromptMessage | Message)[];
  /** 1-128 characters of `[A-Za-z0-9._:-]`; the same holds for `requestId` and `runId`. */
  sessionId?: string;
  /**
   * Whose session it is: an id of a user or a tenant, from the host's authentication. The first run of a session fixes
   * its owner; a later start with another one throws `FORBIDDEN`. The comparison is part of the start's transaction.
   * Default: nothing is compared. Without `sessionId` it has no effect.
   */
  sessionOwner?: string;
  /** Idempotency key, unique per session, or per agent without one. */
  requestId?: string;
  /** Id of the new run. Default: a UUIDv7. */
  runId?: string;
  /** What to do when `runId` exists. Default `reject`. */
  ifExists?: 'reject' | 'resume' | 'restart';
  /** Wait in line when the session is busy instead of being refused. Default false. */
  enqueue?: boolean;
  /** Tokens the run may use, at which it waits for more. Default: no limit. */
  budget?: { maxTotalTokens: number };
  /** At most 64 pairs, shown in lists and filtered by. */
  metadata?: RunMetadata;
  /** From the host's authentication. */
  actor?: Actor;
  /** Absolute point in time after which the run is `timed_out`. */
  deadline?: Date;
  /** Active time after which the run is `timed_out`; overrides the agent's. */
  maxDuration?: Duration;
}

/** What a start is part of. */
export interface StartContext {
  /** The host's open transaction (an `EntityManager` under `./typeorm`): the run exists only if it commits. */
  transaction?: unknown;
}

/** What `sessionMessages` takes. */
export interface SessionMessagesOptions {
  /** As at `start`: a session of another owner throws `FORBIDDEN`. Default: nothing is compared. */
  sessionOwner?: string;
}

/** How long `result` and `startAndWait` wait. */
export interface WaitOptions {
  /** Default: no limit. When it passes, the run is returned in the state it has. */
  timeout?: Duration;
  /** Gives up waiting; never touches the run. */
  signal?: AbortSignal;
}

/** Who does something to a run and why, for the journal. Texts of at most 4,000 characters. */
export interface CallerNote {
  /** Who does it, as the host names people. */
  by?: string;
  /** Why. */
  reason?: string;
}

/** What `resume` takes. */
export interface ResumeOptions extends CallerNote {
  /** Replaces the stored limit. */
  budget?: { maxTotalTokens: number };
  /** Take the run from a live owner. Needs `confirmation`. */
  allowRunningTakeover?: boolean;
  /** Who says that the owner is gone, and why. */
  confirmation?: { by: string; reason: string };
  /** Resolve only when the run is settled or suspended. Default false. */
  wait?: boolean;
}

/** What became of an uncertain operation: its output, its failure, or that it did not happen. */
export type ToolResolution = ({ output: JsonValue } | { error: { message: string } } | { notHappened: true }) & {
  /** The run-local key or the full operation id. */
  key: string;
  by: string;
  note?: string;
};

/** Decides an interaction. Nothing but these literal words is a decision. */
export type InteractionResponse = (
  | {
      decision: 'approve';
      /** Full replacement; validated, and judged by the approval rule again. */
      arguments?: JsonObject;
    }
  | { decision: 'deny' }
  | {
      action: 'accept';
      /** One per question id. */
      answers: JsonObject;
    }
  | { action: 'decline' | 'cancel' }
) & {
  /** Who decides, from the host's authentication. */
  by: string;
  note?: string;
  /**
   * The roles of whoever decides, from the host's authentication. Given, they must contain the
   * interaction's `approverRole`; without them the caller is trusted to have compared them. Not stored.
   */
  roles?: readonly string[];
};

/** What lists of runs and of interactions have in common. */
export interface ListFilter {
  sessionId?: string;
  agent?: string;
  /** Id of the actor who started the run. */
  actor?: string;
  /** All given pairs, on the run. */
  metadata?: RunMetadata;
  /** Created at this moment or later. */
  createdSince?: Date;
  /** Created before this moment. */
  createdBefore?: Date;
  /** `nextCursor` of the page before. */
  after?: string;
  /** 1-100, default 50. A page ends sooner after 4 MiB of JSON text. */
  limit?: number;
}

/** What `pendingInteractions` takes. */
export interface PendingInteractionsOptions extends ListFilter {
  /** Of this run alone. */
  runId?: string;
  /** Those that only holders of this role may decide. */
  approverRole?: string;
  /** Default `pending`. */
  status?: InteractionStatus | readonly InteractionStatus[];
}

/** What `steer` takes beside the message. */
export interface SteerOptions {
  /** Idempotency key within the run. Default: a new one. */
  requestId?: string;
  /** Who sends it, from the host's authentication. */
  sender: string;
}

/** A message that was accepted; `messageId` is its request id. */
export interface SteerReceipt {
  /** Its request id. */
  messageId: string;
  status: 'queued';
}

/** Who grants or denies tokens, and why. */
export interface BudgetDecision {
  /** Who decides. */
  by: string;
  /** Why. */
  note?: string;
}

/** What `retry` takes. */
export interface RetryOptions extends CallerNote {
  /**
   * The run's turn limit from now on, over all its model calls; more than it has made. Default: the one it was started
   * with.
   */
  maxTurns?: number;
}

/** What `restart` takes. */
export interface RestartOptions extends RetryOptions {
  /** Default: what the generation before was given. */
  prompt?: string;
}

/** What `list` takes. */
export interface ListOptions extends ListFilter {
  /** Any of these; absent = any. */
  status?: RunStatus | readonly RunStatus[];
  /** With `status`: what fits both. */
  phase?: RunPhase;
}

/** What `events` takes. */
export interface EventOptions {
  /** Where to read on: a sequence already seen, or the id of a streamed event. Default 0, the beginning. */
  after?: number | string;
  /** 1-500, default 500. A page ends sooner after 4 MiB of JSON text. */
  limit?: number;
  /** `full` carries content; `lifecycle` carries digests instead. Default `full`. */
  projection?: 'full' | 'lifecycle';
}

/** What `stream` takes. */
export interface StreamOptions extends Omit<EventOptions, 'limit'> {
  /** Ends the stream. It changes nothing about the run. */
  signal?: AbortSignal;
}
