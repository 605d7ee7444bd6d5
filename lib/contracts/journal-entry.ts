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
  /** One of the {@link ErrorCode}s, or the code of the host's own error. */
  code: string;
  /** Masked and bounded. */
  message: RecordedText;
  /** The exception's class name. */
  name?: string;
  /** HTTP status of a provider. */
  status?: number;
  /** Whether the same may succeed later; absent = unknown. */
  retryable?: boolean;
}

/** The approval that a call needs. */
export interface ApprovalVerdict {
  /** Why a person is asked. */
  reason?: string;
  /** What may go wrong. */
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

/** Every word of {@link FinishReason}. */
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
/**
 * How a reply ended. `stop` and `tool-calls` are the good endings; `pause` is sent back so that the provider
 * can continue the same turn. `length` was truncated at the output limit, `content-filter` and `refusal` were declined.
 * `error` broke off, `other` is a word that is not known, `unknown` is no word at all: these three are failed attempts.
 */
export type FinishReason = (typeof FINISH_REASONS)[number];

/** An entry about one tool call. */
interface OfCall {
  key: string;
  /** The tool's name. */
  tool?: string;
}

/** An entry that ends a run, or a generation of it. */
interface Closing {
  /** Request ids of messages that were sent into the run and never delivered. */
  withdrawn?: string[];
}

/** Something that a caller did. */
interface ByCaller {
  by?: string;
  reason?: string;
}

/** A run that begins again. */
interface Again extends ByCaller, Closing {
  /** The turn limit from now on, where it was changed. */
  maxTurns?: number;
}

interface Claim extends ByCaller {
  attempt: number;
  cause: ClaimCause;
  owner: string;
  previousOwner?: string;
  /** How long the run had no owner, in ms. */
  unownedForMs: number;
  /** Of a takeover: lease time that was left, in ms. */
  leaseRemainingMs?: number;
  /** Set when an accepted definition change came with this claim (`definitionChange: 'accept'`). */
  definitionChange?: { from: string; to: string };
}

interface Failure extends Closing {
  error: RunError;
}

/** Work inside a tool call that is not repeated when the method is entered again (`context.step`). */
interface Step extends OfCall {
  step: string;
}

/** What was decided, whole: the fold needs nothing else. Expiry is a refusal by `system`. */
interface Decision extends OfCall {
  interactionId: string;
  decision: InteractionDecision;
}

interface Budget {
  maxTotalTokens: number | null;
  consumed: number;
  by?: string;
  note?: string;
}

/** What an entry says, by its type. */
export interface JournalFacts {
  'run.submitted': { messages: Message[]; actor?: Actor };
  /** What runs of the session did that ended without an answer; fixed when this run was first claimed. */
  'history.effects': {
    /** Stands between the history and the run's own input. */
    message: UserMessage;
  };
  'run.queued': { behindRunId: string };
  'run.dequeued': { afterRunId: string };
  /** The first claim. */
  'run.started': Claim;
  /** Every later claim. */
  'run.resumed': Claim;
  'run.lease_expired': {
    owner: string;
    /** Null when the owner's worker row is gone. */
    expiredAt: number | null;
  };
  'run.handed_over': { attempt: number };
  'run.suspended': { waitingFor: WaitReason[] };
  'run.backing_off': {
    key: string | null;
    nextAttemptAt: number;
    delayMs: number;
    /** The provider's own announcement in ms, where it made one. */
    retryAfterMs?: number;
  };
  'run.attention_needed': { attention: Attention };
  'run.interrupt_requested': ByCaller;
  'run.interrupted': ByCaller;
  'run.resume_requested': ByCaller;
  /** With the lease time that was left. */
  'run.takeover_requested': ByCaller & Pick<Claim, 'leaseRemainingMs'>;
  'run.retried': Again;
  'run.restarted': Again & { generation: number; messages: Message[] };
  'run.cancelled': ByCaller & Closing;
  'run.completed': Closing;
  'run.failed': Failure;
  'run.timed_out': Failure;
  'run.blocked': Failure;
  'run.steered': { message: Message; requestId: string; sender: string };
  /** What the agent's function of instructions returned for this run, or this generation of it. */
  'instructions.evaluated': { instructions: string };
  'model.started': {
    key: string;
    /** The number of this request of the operation, crashes included. */
    attempt: number;
    model: string;
    /** Chain digest over all that was sent before. */
    digest: string;
  };
  'model.attempt_failed': {
    key: string;
    attempt: number;
    error: RecordedError;
    /** The three of a reply that arrived and ended badly. */
    finishReason?: FinishReason;
    /** Counted like that of a good reply. */
    usage?: Usage;
    /** What it said, where no further attempt follows. */
    text?: string;
  };
  'model.completed': {
    key: string;
    message: AssistantMessage;
    finishReason: FinishReason;
    usage: Usage;
    calls: CallVerdict[];
  };
  'tool.started': OfCall & {
    attempt: number;
    /** The policy in force for this attempt. */
    recovery: RecoveryPolicy;
    /** Over the validated arguments. */
    digest: string;
  };
  /** The method was not entered: its intent is taken back. */
  'tool.released': OfCall;
  /** The method requested an interaction in the middle of its work and was left. */
  'tool.waiting': OfCall & {
    interactionId: string;
    kind: InteractionKind;
    /** 0 for the method's first interaction. */
    ordinal: number;
    /** Over what was asked: another question under the same ordinal is drift. */
    digest: string;
  };
  'tool.step_started': Step & {
    /** What to do when it was interrupted. */
    recovery?: RecoveryPolicy;
  };
  'tool.step_completed': Step & { output?: JsonValue; error?: RecordedError };
  'tool.completed': OfCall & {
    output: JsonValue;
    /** What normalisation changed, e.g. `non-finite number at $.a became null`. */
    notes?: string[];
  };
  'tool.failed': OfCall & {
    outcome: Extract<ToolOutcome, 'error' | 'invalid_arguments' | 'unknown_tool' | 'cancelled' | 'not_executed'>;
    error: RecordedError;
  };
  'tool.denied': OfCall & { by: string; reason?: RecordedText };
  'tool.uncertain': OfCall & {
    /** Null when nothing interrupted it: its result could not be recorded. */
    interruptedBy: OperationInterruption | null;
    /** What else is wrong: a result without a JSON form, another question than before. */
    problem?: RecordedText;
    /** Of the attention this leads to; default `uncertain_outcome`. */
    reason?: Extract<AttentionReason, 'unserialisable_result' | 'input_drift'>;
    /** True: the model is told that the outcome is unknown (policy `inform`); false: a person must settle it. */
    reportedToModel: boolean;
  };
  'tool.resolved': OfCall & {
    resolution: { output: JsonValue } | { error: { message: string } } | { notHappened: true };
    by: string;
    note?: string;
    reconciled: true;
  };
  'tool.probed': OfCall & {
    result: 'happened' | 'did-not-happen' | 'unknown';
    /** What happened, for `happened`; the call is complete with it. */
    output?: JsonValue;
  };
  /** The result of a call that outlived its cancelled run: evidence, counted nowhere. */
  'operation.late_result': { key: string; attempt: number; output?: JsonValue; error?: RecordedError };
  'interaction.requested': OfCall & {
    interactionId: string;
    kind: InteractionKind;
    digest: string;
    /** Epoch ms; null = never. */
    expiresAt: number | null;
    /** Role of those who may decide; absent = anybody. */
    approverRole?: string;
  };
  'interaction.answered': Decision;
  'interaction.expired': Decision;
  'budget.exhausted': Budget;
  'budget.granted': Budget & {
    /** Tokens added. */
    amount?: number;
  };
  'budget.denied': Budget;
  'budget.limit_replaced': Budget;
}

/** The types of journal entries. Later versions may add some; readers ignore what they do not know. */
export type JournalEntryType = keyof JournalFacts;

/** The entry of a type, or of one of several. */
export type EntryOf<Type extends JournalEntryType> = {
  [T in Type]: {
    type: T;
    /** Epoch ms. */
    at: number;
  } & JournalFacts[T];
}[Type];

/**
 * The facts of a run, in the order in which they were committed. The journal is at once the recovery log, the event
 * stream and the transcript: each message is stored once, in the entry that brought it. Readers ignore types they do
 * not know.
 */
export type JournalEntry = EntryOf<JournalEntryType>;

/** An entry with the place the store gave it: 1, 2, 3 … without gaps within a run. */
export type SequencedEntry = JournalEntry & { sequence: number };
