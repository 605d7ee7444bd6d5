import { NO_USAGE, type Operation, type OperationInterruption, type UsageTotals } from '../../contracts/operation.js';
import type { InteractionDecision, InteractionKind, Question } from '../../contracts/interaction.js';
import type { RecordedText } from '../../contracts/text.js';
import type { ApprovalVerdict, FinishReason, RecordedError } from '../../contracts/journal-entry.js';
import type { JsonObject, JsonValue } from '../../contracts/json.js';
import type { ApprovalEdit, Message, ToolOutcome } from '../../contracts/message.js';
import type { RecoveryPolicy } from '../../contracts/policies.js';
import type { RunError, RunTotals } from '../../contracts/run.js';
import type { AttentionReason, RunStatus } from '../../contracts/run-status.js';

/** A call of the latest reply. */
export interface CallState {
  key: string;
  callId: string;
  name: string;
  toolVersion: string | null;
  /** Policy committed with the call, later the one in force when it was begun. */
  recovery: RecoveryPolicy | null;
  /** As the model, or an approver, gave them. */
  given: JsonObject;
  /** As it will be executed: what the schema made of them. */
  input: JsonObject;
  /** What approvers changed about it, in call order. */
  edits: ApprovalEdit[];
  approval: ApprovalVerdict | null;
  /** The call is itself a question: its answers are its result. */
  questions: Question[] | null;
  /** The interaction that decides whether it begins; null = none yet. */
  interactionId: string | null;
  /** Interactions of the method itself, in the order in which it requested them. */
  methodInteractions: MethodInteraction[];
  /** How often an interaction about it was withdrawn with the run and requested anew. */
  withdrawn: number;
  /** Work inside the call that is not repeated (`context.step`), by its key. */
  steps: Map<string, StepState>;
  /** `ready` to begin, `waiting` for a person, `started` without a result, `uncertain` and blocked, `done`. */
  status: 'ready' | 'waiting' | 'started' | 'uncertain' | 'done';
  attempts: number;
  /** Executions that were begun and not taken back, the one under way included. */
  openAttempts: number;
  interruptedBy: OperationInterruption | null;
  /** What else is wrong with an uncertain call. */
  problem: { detail: RecordedText; reason: AttentionReason } | null;
  outcome: ToolOutcome | null;
  output: JsonValue;
}

/** A call that may have changed something. */
export interface Effect {
  name: string;
  input: JsonObject;
  outcome: ToolOutcome;
}

export type StepState =
  | { status: 'started'; recovery: RecoveryPolicy }
  | { status: 'completed'; output: JsonValue }
  | { status: 'failed'; error: RecordedError };

/** An interaction requested inside a tool method. */
export interface MethodInteraction {
  interactionId: string;
  kind: InteractionKind;
  digest: string;
  /** Null while open. */
  decision: InteractionDecision | null;
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

/**
 * What the journal up to a sequence says about a run: its checkpoint. Built only by folding entries; never stored, so
 * that it cannot contradict the journal. Mutable and private to one fold or one execution.
 */
export interface RunState {
  readonly runId: string;
  generation: number;
  /** Sequence of the last folded entry. */
  sequence: number;
  totals: RunTotals;
  /** History, input, replies and results, in the order the model sees them. */
  messages: Message[];
  /** How many of `messages` are the history of the session. */
  historyLength: number;
  /** What was said about earlier runs of the session; stands behind the history. */
  note: Message | null;
  /** Calls that were begun and have ended, the `safe` ones left out, oldest first; of earlier generations too. */
  effects: Effect[];
  /** What the agent's function of instructions returned; null before. */
  instructions: string | null;
  /** Chain digest over `messages` as stored. */
  digest: string;
  /** The first operation whose recorded digest was another one. */
  drift: string | null;
  operations: Map<string, Operation>;
  /** Model operations begun in this generation; numbers the next one. */
  modelOperations: number;
  model: ModelState | null;
  calls: CallState[];
  /** Of the latest reply; null before the first. */
  finishReason: FinishReason | null;
  /** What the reply said with which the latest attempt failed for good; null where there is none. */
  failedText: string | null;
  /** Replies in a row whose calls were truncated by the output limit. */
  truncatedReplies: number;
  callIds: Set<string>;
  /** What the run was first given, for a restart. */
  input: Message[];
  /** Earlier generations, oldest first. */
  previousGenerations: PastGeneration[];
  /** When this generation was first claimed, and the totals it began with. */
  generationStart: { at: number | null; totals: RunTotals };
  /** How this generation ended; null while it is open. */
  ended: { status: RunStatus; error: RunError | null; at: number } | null;
  /** Amounts granted to the budget. */
  grants: { amount: number; by: string; note?: string; at: number }[];
}

/** How an earlier generation of the run ended, folded from its entries. */
export interface PastGeneration {
  status: RunStatus;
  output: JsonValue;
  error: RunError | null;
  turns: number;
  usage: UsageTotals;
  startedAt: number | null;
  finishedAt: number | null;
}

export function emptyState(runId: string): RunState {
  return {
    runId,
    generation: 1,
    sequence: 0,
    totals: { turn: 0, results: 0, usage: { ...NO_USAGE } },
    messages: [],
    historyLength: 0,
    note: null,
    instructions: null,
    effects: [],
    digest: '',
    drift: null,
    operations: new Map(),
    modelOperations: 0,
    model: null,
    calls: [],
    finishReason: null,
    failedText: null,
    truncatedReplies: 0,
    callIds: new Set(),
    input: [],
    previousGenerations: [],
    generationStart: { at: null, totals: { turn: 0, results: 0, usage: { ...NO_USAGE } } },
    ended: null,
    grants: [],
  };
}

/** How an earlier generation ended, known when the next one begins. */
export function pastGeneration(state: RunState): PastGeneration {
  const { totals, generationStart, ended } = state;
  const text = latestText(state);
  const usage = { ...totals.usage };
  for (const name of Object.keys(usage) as (keyof UsageTotals)[]) usage[name] -= generationStart.totals.usage[name];
  return {
    status: ended?.status ?? 'failed',
    output: text === '' ? null : text,
    error: ended?.error ?? null,
    turns: totals.turn - generationStart.totals.turn,
    usage,
    startedAt: generationStart.at,
    finishedAt: ended?.at ?? null,
  };
}

/** The text of the latest reply of this generation; empty without one. */
export function latestText(state: RunState): string {
  if (state.failedText !== null) return state.failedText;
  for (let index = state.messages.length - 1; index >= state.historyLength; index--) {
    const message = state.messages[index];
    if (message?.role !== 'assistant') continue;
    return message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
  }
  return '';
}

/**
 * Whether a call that is over was begun, and could have changed something. A refusal after its beginning did nothing.
 */
export function mayHaveActed({ attempts, recovery, outcome }: CallState): boolean {
  return attempts > 0 && recovery !== 'safe' && (outcome === 'success' || outcome === 'error' || isOpen(outcome));
}

/**
 * What a run did that is not known to be without effect, oldest first. Calls that have no result are of unknown
 * outcome.
 */
export function effectsOf({ effects, calls }: RunState): Effect[] {
  const cut = calls.filter(
    ({ status, recovery, steps }) =>
      recovery !== 'safe' && (status === 'started' || status === 'uncertain' || (status !== 'done' && steps.size > 0)),
  );
  return [...effects, ...cut.map(({ name, input }): Effect => ({ name, input, outcome: 'unknown' }))];
}

function isOpen(outcome: CallState['outcome']): boolean {
  return outcome === 'unknown' || outcome === 'cancelled';
}
