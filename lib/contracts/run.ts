import type { JsonValue } from './json.js';
import type { RecordedText } from './text.js';
import type { RecoveryPolicy, RetryPolicy } from './policies.js';
import type { Attention, RunStatus, WaitReason } from './run-status.js';
import type { UsageTotals } from './operation.js';

/** Version of the journal's form that this package writes; an older engine refuses to run a newer one. */
export const CONTRACT_VERSION = 1;

/**
 * `serial`: one run of a session at a time, each sees the messages of those before it. `parallel`: runs do not wait
 * for each other.
 */
export type SessionMode = 'serial' | 'parallel';

/** Flat, indexed, at most 191 characters a value. */
export type RunMetadata = Record<string, string | number | boolean>;

/** Registration facts fixed at submission. */
export interface FrozenOptions {
  /** Model calls of the whole run at most, restarts included. */
  maxTurns: number;
  /** How model requests are repeated. */
  modelRetry: RetryPolicy;
  /** Tool calls of one turn at a time; 1 = the model's order. */
  toolConcurrency: number;
  /** Active time in ms; null = no limit. */
  maxDurationMs: number | null;
  /** Policy per `name@version` of each tool. */
  recovery: Record<string, RecoveryPolicy>;
}

/** Why a run becomes active. */
export type ClaimCause =
  | 'submitted'
  | 'answered'
  | 'budget'
  | 'backoff'
  | 'recovered'
  | 'retried'
  | 'resumed'
  | 'takeover'
  | 'handover'
  | 'resolved'
  | 'restarted';

/** Noted on the row when the run becomes claimable; journaled by the next claim. */
export interface WakeNote {
  /** What made it claimable. */
  cause: ClaimCause;
  /** Who caused it; absent = nobody did. */
  by?: string;
  /** Why, in their words. */
  reason?: string;
  /** The worker that had it before. */
  previousOwner?: string;
  /** Lease time that was left when a live lease was taken away, in ms. */
  leaseRemainingMs?: number;
}

/**
 * A requested stop of a run with an owner. Noted on the row and journaled by its owner, or by the transition that takes
 * it off.
 */
export interface InterruptRequest {
  /** Epoch ms. */
  at: number;
  /** Who asked for it. */
  by?: string;
  /** Why. */
  reason?: string;
  /** Whether the journal has it. */
  journaled: boolean;
}

/** Why a run failed: one of the {@link ErrorCode}s, and words that may be shown. */
export interface RunError {
  /** One of the {@link ErrorCode}s. */
  code: string;
  /** Masked and bounded, fit to be shown. */
  message: RecordedText;
}

/** Small sums carried on every journal row. */
export interface RunTotals {
  /** Model operations begun, over the whole run. */
  turn: number;
  /** Operations whose result is committed: the progress that `maxRecoveries` counts from. */
  results: number;
  /** Over the whole run. */
  usage: UsageTotals;
}

/** The columns of a run's header that a transition may change. */
interface RunHeader {
  definitionHash: string;
  /** The run whose messages (and those before it) this run saw; fixed once, when it reached the head of its session. */
  historyRunId: string | null;
  /** True once `historyRunId` is fixed, even to null. */
  historyCaptured: boolean;
  /** The run that completed before this one in its session: the chain a history is read along. Set on completion. */
  precedingRunId: string | null;
  status: RunStatus;
  waitingFor: WaitReason[];
  attention: Attention | null;
  /** Fencing token: +1 with each claim; 0 = never claimed. */
  attempt: number;
  /** Worker id of the current or last attempt. */
  owner: string | null;
  wake: WakeNote | null;
  nextAttemptAt: number | null;
  deadlineAt: number | null;
  interruptRequest: InterruptRequest | null;
  /** Claims in a row that followed a lost lease without a committed result in between. */
  recoveries: number;
  /** `totals.results` when the current attempt was claimed. */
  resultsAtClaim: number;
  restarts: number;
  budgetMaxTotalTokens: number | null;
  frozen: FrozenOptions;
  output: JsonValue | null;
  error: RunError | null;
  /** Active time before the current attempt, in ms. */
  activeMs: number;
  claimedAt: number | null;
  startedAt: number | null;
  finishedAt: number | null;
}

/**
 * A run as the store keeps it: the header row plus the running totals of its last journal row.
 * Times are epoch milliseconds by the database clock. Null means "not (yet) so", never "unknown".
 */
export interface RunRecord extends RunHeader {
  /** Id of the run. */
  id: string;
  kind: 'agent';
  /** Name of the agent. */
  agent: string;
  /** Version of the agent, fixed at submission. */
  version: string;
  /** Version of the journal's form that it is written in. */
  contractVersion: number;

  /** Id of its session; null = it has none. */
  sessionId: string | null;
  /** Null without a session. */
  sessionMode: SessionMode | null;
  /** Place in the session, from 1, given in the store. */
  sessionOrder: number | null;

  /** `session:<id>`, `agent:<name>` or `run:<id>`: the scope in which `requestId` is unique. */
  requestScope: string;
  /** The caller's id, else the run's own. */
  requestId: string;
  /** Over agent and input, key order ignored. */
  requestDigest: string;

  /** Who the run works for, as given to `start`; null = nobody was named. */
  actor: Actor | null;
  /** As given to `start`; empty = none. */
  metadata: RunMetadata;
  /** When it was submitted. */
  createdAt: number;
  /** Last change of the header. */
  updatedAt: number;
  /** Row version: +1 with each change of the header. */
  revision: number;

  /** Sequence of the last committed entry. */
  sequence: number;
  /** Of its last journal row. */
  totals: RunTotals;
}

/** What a transition changes of a header. */
export type RunChange = Partial<RunHeader>;

/** The row that serialises a session. */
export interface SessionRecord {
  /** As given to `start`. */
  id: string;
  /** Fixed by its first run. */
  mode: SessionMode;
  /**
   * Whose session it is, from its first run; compared with every later start that names an owner. Null: its first run
   * named none.
   */
  owner: string | null;
  /** Serial: the unfinished run that holds the session. Parallel: always null. */
  headRunId: string | null;
  /** Null = none has completed yet. */
  latestCompletedRunId: string | null;
  /** Order given to the latest submission, from 1. */
  lastOrder: number;
  /** Highest order that reached the head. */
  startedOrder: number;
}

/** What a transition changes of a session. */
export type SessionChange = Partial<Pick<SessionRecord, 'headRunId' | 'latestCompletedRunId' | 'startedOrder'>>;

/** What a list shows: never prompts, arguments, results or output. */
export const RUN_SUMMARY_PROPERTIES = [
  'id',
  'agent',
  'version',
  'status',
  'waitingFor',
  'attention',
  'sessionId',
  'sessionOrder',
  'precedingRunId',
  'actor',
  'attempt',
  'sequence',
  'totals',
  'metadata',
  'nextAttemptAt',
  'createdAt',
  'updatedAt',
  'startedAt',
  'finishedAt',
] as const satisfies readonly (keyof RunRecord)[];

/** A run as a list shows it: never prompts, arguments, results or output. */
export type RunSummary = Pick<RunRecord, (typeof RUN_SUMMARY_PROPERTIES)[number]>;

/** Who acts: from the host's authentication, never from a request body. */
export interface Actor {
  /** The host's id of a person or a program. */
  id: string;
  /** Roles that `approverRole` is compared with; absent = none. */
  roles?: string[];
}
