/**
 * What the journal up to a sequence says about a run: its checkpoint (JRN-4). Built only by folding entries; never stored, so that it cannot
 * contradict the journal. Mutable and private to one fold or one execution.
 */
import type { FinishReason, ApprovalVerdict } from '../../contracts/journal-entry.js';
import type { JsonObject, JsonValue } from '../../contracts/json.js';
import type { Message, ToolOutcome } from '../../contracts/message.js';
import type { Operation, OperationCut } from '../../contracts/operation.js';
import type { RecoveryPolicy } from '../../contracts/recovery-policy.js';
import { NO_USAGE } from '../../contracts/usage.js';
import type { RunTotals } from '../../contracts/run.js';

/** A call of the latest reply. */
export interface CallState {
  key: string;
  callId: string;
  name: string;
  toolVersion: string | null;
  /** Policy committed with the call, later the one in force when it was begun. */
  recovery: RecoveryPolicy | null;
  /** As it will be executed. */
  input: JsonObject;
  approval: ApprovalVerdict | null;
  /** The ask that was committed for it; null = none yet. */
  interactionId: string | null;
  /** `ready` to begin, `waiting` for a person, `started` without a result, `uncertain` and blocked, `done`. */
  status: 'ready' | 'waiting' | 'started' | 'uncertain' | 'done';
  attempts: number;
  cut: OperationCut | null;
  /** Why its result could not be recorded. */
  problem: string | null;
  outcome: ToolOutcome | null;
  output: JsonValue;
}

/** The model operation in progress; null between a reply and the next request. */
export interface ModelState {
  key: string;
  /** Requests begun, crashes included. */
  attempts: number;
  /** Requests the provider failed since the last explicit retry. */
  failures: number;
  status: 'started' | 'failed';
}

export interface RunState {
  readonly runId: string;
  part: number;
  /** Sequence of the last folded entry. */
  sequence: number;
  totals: RunTotals;
  /** History, input, replies and results, in the order the model sees them. */
  messages: Message[];
  /** How many of `messages` are the history of the session. */
  historyLength: number;
  /** Chain digest over `messages` as stored (decision 9). */
  digest: string;
  /** The first operation whose recorded digest was another one (JRN-8). */
  drift: string | null;
  operations: Map<string, Operation>;
  /** Model operations begun in this part; numbers the next one. */
  modelOperations: number;
  model: ModelState | null;
  calls: CallState[];
  /** Of the latest reply; null before the first. */
  finishReason: FinishReason | null;
  /** Replies in a row whose calls were cut off by the output limit. */
  truncatedReplies: number;
  callIds: Set<string>;
}

export function emptyState(runId: string): RunState {
  return {
    runId,
    part: 1,
    sequence: 0,
    totals: { turn: 0, results: 0, usage: { ...NO_USAGE } },
    messages: [],
    historyLength: 0,
    digest: '',
    drift: null,
    operations: new Map(),
    modelOperations: 0,
    model: null,
    calls: [],
    finishReason: null,
    truncatedReplies: 0,
    callIds: new Set(),
  };
}
