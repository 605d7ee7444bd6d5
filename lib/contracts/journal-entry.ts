import type { Actor, ClaimCause, RunError } from './run.js';
import type { InteractionDecision, InteractionKind, Question } from './interaction.js';
import type { JsonObject, JsonValue } from './json.js';
import type { AssistantMessage, Message, ToolOutcome, UserMessage } from './message.js';
import type { OperationInterruption, Usage } from './operation.js';
import type { RecordedText } from './text.js';
import type { RecoveryPolicy } from './policies.js';
import type { Attention, AttentionReason, WaitReason } from './run-status.js';

/** An error as it may be stored and shown: chosen fields only, never a serialised exception. */
export interface RecordedError {
  code: string;
  message: RecordedText;
  /** The exception's class name. */
  name?: string;
  /** HTTP status of a provider. */
  status?: number;
  retryable?: boolean;
}

/** Approval asked for one call. */
export interface ApprovalVerdict {
  reason?: string;
  risk?: string;
  /** Who may decide; compared with the roles that come with a decision. */
  approverRole?: string;
  /** Ms; null = never; absent = the option's default. */
  expiresInMs?: number | null;
}

/** What was decided about a call of a reply, once and for all, when the reply was committed. */
export interface CallVerdict {
  key: string;
  callId: string;
  name: string;
  /** Null for an unknown tool. */
  toolVersion: string | null;
  recovery: RecoveryPolicy | null;
  /** The validated arguments, where defaults or coercion made them differ from the model's. */
  input?: JsonObject;
  /** Present when a person must decide before the call is begun. */
  approval?: ApprovalVerdict;
  /** Present when the call is itself a question to a person (the built-in `ask_user`): the answers are its result. */
  questions?: Question[];
}

/**
 * How a reply ended. `stop` and `tool-calls` are the good endings; `pause` asks to be sent back so that the provider
 * can go on with the same turn. `length` was cut at the output limit, `content-filter` and `refusal` were declined.
 * `error` broke off, `other` is a word that is not known, `unknown` is no word at all: these three are failed attempts.
 */
export const FINISH_REASONS = [
  'stop',
  'tool-calls',
  'pause',
  'length',
  'content-filter',
  'refusal',
  'error',
  'other',
  'unknown',
] as const;
export type FinishReason = (typeof FINISH_REASONS)[number];

interface At {
  /** Epoch ms. */
  at: number;
}

/** An entry about one tool call. */
interface OfCall extends At {
  key: string;
  /** The tool's name. */
  tool?: string;
}

/** An entry that ends a run, or a part of it. */
interface Closing extends At {
  /** Request ids of messages that were sent into the run and never delivered. */
  withdrawn?: string[];
}

export interface RunSubmitted extends At {
  type: 'run.submitted';
  messages: Message[];
  actor?: Actor;
}
/** What runs of the session did that ended without an answer; fixed when this run was first claimed. */
export interface HistoryEffects extends At {
  type: 'history.effects';
  /** Stands between the history and the run's own input. */
  message: UserMessage;
}
export interface RunQueued extends At {
  type: 'run.queued';
  behindRunId: string;
}
export interface RunDequeued extends At {
  type: 'run.dequeued';
  afterRunId: string;
}
/** The first claim (`run.started`) and every later one (`run.resumed`). */
export interface RunClaimed extends At {
  type: 'run.started' | 'run.resumed';
  attempt: number;
  cause: ClaimCause;
  owner: string;
  previousOwner?: string;
  /** How long nobody owned the run, in ms. */
  unownedForMs: number;
  by?: string;
  reason?: string;
  leaseRemainingMs?: number;
  /** Set when an accepted definition change came with this claim (`definitionChange: 'accept'`). */
  definitionChange?: { from: string; to: string };
}
export interface RunLeaseExpired extends At {
  type: 'run.lease_expired';
  owner: string;
  /** Null when the owner's worker row is gone. */
  expiredAt: number | null;
}
export interface RunHandedOver extends At {
  type: 'run.handed_over';
  attempt: number;
}
export interface RunSuspended extends At {
  type: 'run.suspended';
  waitingFor: WaitReason[];
}
export interface RunBackingOff extends At {
  type: 'run.backing_off';
  key: string | null;
  nextAttemptAt: number;
  delayMs: number;
  /** The provider's own announcement in ms, where it made one. */
  retryAfterMs?: number;
}
export interface RunAttentionNeeded extends At {
  type: 'run.attention_needed';
  attention: Attention;
}
export interface RunInterruptRequested extends At {
  type: 'run.interrupt_requested' | 'run.interrupted';
  by?: string;
  reason?: string;
}
export interface RunCallerVerb extends Closing {
  type: 'run.resume_requested' | 'run.takeover_requested' | 'run.retried' | 'run.cancelled';
  by?: string;
  reason?: string;
  /** For a takeover: lease time that was left, in ms. */
  leaseRemainingMs?: number;
  /** For a retry: the turn limit from now on, where it was changed. */
  maxTurns?: number;
}
export interface RunCompleted extends Closing {
  type: 'run.completed';
}
export interface RunFailed extends Closing {
  type: 'run.failed' | 'run.timed_out' | 'run.blocked';
  error: RunError;
}
export interface RunRestarted extends Closing {
  type: 'run.restarted';
  generation: number;
  messages: Message[];
  /** The turn limit from now on, where it was changed. */
  maxTurns?: number;
  by?: string;
  reason?: string;
}
export interface RunSteered extends At {
  type: 'run.steered';
  message: Message;
  requestId: string;
  sender: string;
}
/** What the agent's function of instructions returned for this run, or this generation of it. */
export interface InstructionsEvaluated extends At {
  type: 'instructions.evaluated';
  instructions: string;
}
export interface ModelStarted extends At {
  type: 'model.started';
  key: string;
  /** The number of this request of the operation, crashes included. */
  attempt: number;
  model: string;
  /** Chain digest over all that was sent before. */
  digest: string;
}
export interface ModelAttemptFailed extends At {
  type: 'model.attempt_failed';
  key: string;
  attempt: number;
  error: RecordedError;
  /** The three of a reply that arrived and ended badly. */
  finishReason?: FinishReason;
  /** Counted like that of a good reply. */
  usage?: Usage;
  /** What it said, where no further attempt follows. */
  text?: string;
}
export interface ModelCompleted extends At {
  type: 'model.completed';
  key: string;
  message: AssistantMessage;
  finishReason: FinishReason;
  usage: Usage;
  calls: CallVerdict[];
}
export interface ToolStarted extends OfCall {
  type: 'tool.started';
  attempt: number;
  /** The policy in force for this attempt. */
  recovery: RecoveryPolicy;
  /** Over the validated arguments. */
  digest: string;
}
export interface ToolReleased extends OfCall {
  type: 'tool.released';
}
/** The method asked somebody in the middle of its work and left. */
export interface ToolWaiting extends OfCall {
  type: 'tool.waiting';
  interactionId: string;
  kind: InteractionKind;
  /** 0 for the method's first ask. */
  ordinal: number;
  /** Over what was asked: another ask under the same ordinal is drift. */
  digest: string;
}
/** Work inside a tool call that is not repeated when the method is entered again (`context.step`). */
export interface ToolStepEntry extends OfCall {
  type: 'tool.step_started' | 'tool.step_completed';
  step: string;
  /** For `started`: what to do when it was cut. */
  recovery?: RecoveryPolicy;
  output?: JsonValue;
  error?: RecordedError;
}
export interface ToolCompleted extends OfCall {
  type: 'tool.completed';
  output: JsonValue;
  /** What normalisation changed, e.g. `non-finite number at $.a became null`. */
  notes?: string[];
}
export interface ToolFailed extends OfCall {
  type: 'tool.failed';
  outcome: Extract<ToolOutcome, 'error' | 'invalid_arguments' | 'unknown_tool' | 'cancelled' | 'not_executed'>;
  error: RecordedError;
}
export interface ToolDenied extends OfCall {
  type: 'tool.denied';
  by: string;
  reason?: RecordedText;
}
export interface ToolUncertain extends OfCall {
  type: 'tool.uncertain';
  /** Null when nothing cut it: its result could not be recorded. */
  interruptedBy: OperationInterruption | null;
  /** What else is wrong: a result without a JSON form, another ask than before. */
  problem?: RecordedText;
  /** Of the attention this leads to; default `uncertain_outcome`. */
  reason?: Extract<AttentionReason, 'unserialisable_result' | 'input_drift'>;
  /** True: the model is told that the outcome is unknown (policy `inform`); false: a person must settle it. */
  reportedToModel: boolean;
}
export interface ToolResolved extends OfCall {
  type: 'tool.resolved';
  resolution: { output: JsonValue } | { error: { message: string } } | { notHappened: true };
  by: string;
  note?: string;
  reconciled: true;
}
export interface ToolProbed extends OfCall {
  type: 'tool.probed';
  result: 'happened' | 'did-not-happen' | 'unknown';
  /** What happened, for `happened`; the call is complete with it. */
  output?: JsonValue;
}
/** What a call of a cancelled run still brought home: evidence, counted nowhere. */
export interface OperationLateResult extends At {
  type: 'operation.late_result';
  key: string;
  attempt: number;
  output?: JsonValue;
  error?: RecordedError;
}
export interface InteractionRequested extends OfCall {
  type: 'interaction.requested';
  interactionId: string;
  kind: InteractionKind;
  digest: string;
  /** Epoch ms; null = never. */
  expiresAt: number | null;
  /** Who may decide; absent = anybody. */
  approverRole?: string;
}
/** What was decided, whole: the fold needs nothing else. Expiry is a refusal by `system`. */
export interface InteractionDecided extends OfCall {
  type: 'interaction.answered' | 'interaction.expired';
  interactionId: string;
  decision: InteractionDecision;
}
export interface BudgetEntry extends At {
  type: 'budget.exhausted' | 'budget.granted' | 'budget.denied' | 'budget.limit_replaced';
  maxTotalTokens: number | null;
  consumed: number;
  /** Tokens added, for `granted`. */
  amount?: number;
  by?: string;
  note?: string;
}

/**
 * The facts of a run, in the order in which they were committed. The journal is at once the recovery log, the event
 * stream and the transcript: each message is stored once, in the entry that brought it. Readers ignore types they do
 * not know.
 */
export type JournalEntry =
  | RunSubmitted
  | HistoryEffects
  | RunQueued
  | RunDequeued
  | RunClaimed
  | RunLeaseExpired
  | RunHandedOver
  | RunSuspended
  | RunBackingOff
  | RunAttentionNeeded
  | RunInterruptRequested
  | RunCallerVerb
  | RunCompleted
  | RunFailed
  | RunRestarted
  | RunSteered
  | InstructionsEvaluated
  | ModelStarted
  | ModelAttemptFailed
  | ModelCompleted
  | ToolStarted
  | ToolReleased
  | ToolWaiting
  | ToolStepEntry
  | ToolCompleted
  | ToolFailed
  | ToolDenied
  | ToolUncertain
  | ToolResolved
  | ToolProbed
  | OperationLateResult
  | InteractionRequested
  | InteractionDecided
  | BudgetEntry;

export type JournalEntryType = JournalEntry['type'];

/** An entry with the place the store gave it: 1, 2, 3 … without gaps within a run. */
export type SequencedEntry = JournalEntry & { sequence: number };
