import type { JsonValue } from '../contracts/json.js';
import type { RunError } from '../contracts/run.js';
import type { Attention, WaitReason } from '../contracts/run-status.js';
import { latestText, type CallState, type RunState } from './journal/run-state.js';
import { recordedFailure, recordedText } from './values/recorded-error.js';

export type NextAction =
  | { do: 'call_model'; key: string; attempt: number }
  | { do: 'start_calls'; calls: CallState[] }
  /** Something is in flight; its result decides. */
  | { do: 'await' }
  /** Waiting for people or budget. Interactions that were not requested yet are requested with it. */
  | { do: 'suspend'; waitingFor: WaitReason[] }
  /** A boundary was reached with a stop wanted. */
  | { do: 'interrupt' }
  | { do: 'call_attention'; attention: Attention }
  | { do: 'complete'; output: JsonValue }
  | { do: 'fail'; error: RunError; output: JsonValue };

export interface ActionFacts {
  /** Keys of operations that this process is executing now. */
  inFlight: { has(key: string): boolean; readonly size: number };
  toolConcurrency: number;
  maxTurns: number;
  maxOperations: number;
  maxModelAttempts: number;
  allowEmptyAnswer: boolean;
  /** Tokens; null = no limit. */
  budget: number | null;
  /** A caller wants the run stopped at its next boundary. */
  interrupt: boolean;
  /** Whether a call must have the run to itself (a `transactional` one). */
  isExclusive: (call: CallState) => boolean;
}

/**
 * What a run does next, decided from its folded journal alone. Pure: no clock, no store, nothing of the user's code.
 * Kept here: I1 (the caller commits the intents this names before acting) and I5 (no model request while a call owes
 * its result).
 */
export function nextAction(state: RunState, facts: ActionFacts): NextAction {
  if (state.drift !== null) return { do: 'call_attention', attention: driftAttention(state.drift) };
  const open = state.calls.filter((call) => call.status !== 'done');
  if (open.length > 0) return openCalls(state, open, facts);
  if (state.model) return unfinishedModel(state, facts);
  if (isUnmeasured(state, facts)) return unmeasured(state);
  const ended = state.finishReason === null ? null : endOfReply(state, facts);
  if (ended) return ended;
  if (state.totals.turn >= facts.maxTurns) {
    return fail(
      state,
      'MAX_TURNS_EXCEEDED',
      `The run made ${state.totals.turn} model calls; its limit (maxTurns) is ${facts.maxTurns}. A new limit of the agent holds for new runs only: to let this one go on, retry it with a higher maxTurns.`,
    );
  }
  if (state.operations.size >= facts.maxOperations) return tooManyOperations(state, facts);
  const held = heldBack(state, facts);
  if (held) return held;
  return { do: 'call_model', key: `r${state.generation}.m${state.modelOperations + 1}`, attempt: 1 };
}

function openCalls(state: RunState, open: CallState[], facts: ActionFacts): NextAction {
  if (state.operations.size > facts.maxOperations)
    return facts.inFlight.size > 0 ? { do: 'await' } : tooManyOperations(state, facts);
  // BUD-3: nothing more is begun or requested.
  const startable = isUnmeasured(state, facts) ? [] : selectStartable(open, facts);
  const held = startable.length > 0 ? heldBack(state, facts) : null;
  if (startable.length > 0 && !held) return { do: 'start_calls', calls: startable };
  if (facts.inFlight.size > 0) return { do: 'await' };
  // A call that is begun, and not executed here, should have been decided by the recovery: a person rather than a wait
  // for nobody.
  const blocked = open.filter((call) => call.status === 'uncertain' || call.status === 'started');
  if (blocked.length > 0) return { do: 'call_attention', attention: uncertainAttention(blocked) };
  if (isUnmeasured(state, facts)) return unmeasured(state);
  // Also where it would wait anyhow: an answer must not set it going again.
  if (facts.interrupt || held?.do === 'interrupt') return { do: 'interrupt' };
  return { do: 'suspend', waitingFor: [...waitReasons(open), ...(held ? held.waitingFor : [])] };
}

/** What keeps the next request or call from being begun; null = nothing. */
function heldBack(
  state: RunState,
  facts: ActionFacts,
): Extract<NextAction, { do: 'suspend' }> | { do: 'interrupt' } | null {
  if (facts.interrupt) return { do: 'interrupt' };
  if (facts.budget === null || state.totals.usage.totalTokens < facts.budget) return null;
  return { do: 'suspend', waitingFor: ['budget'] };
}

/** A budget that cannot be kept, because the model does not say what it used. */
function isUnmeasured(state: RunState, facts: ActionFacts): boolean {
  return facts.budget !== null && state.totals.usage.unknownCalls > 0;
}

function unmeasured(state: RunState): NextAction {
  return fail(
    state,
    'USAGE_UNKNOWN',
    'The run has a token budget, but its model did not report how many tokens a reply used. Start a new run with a model that does, or without a budget; this one cannot go on.',
  );
}

/** What the calls that wait for people wait for. */
function waitReasons(open: CallState[]): WaitReason[] {
  const waiting = open.filter((call) => call.status === 'waiting');
  const isQuestion = ({ questions, methodInteractions }: CallState): boolean =>
    questions !== null || methodInteractions.at(-1)?.kind === 'question';
  return [
    ...(waiting.some((call) => !isQuestion(call)) ? (['approval'] as const) : []),
    ...(waiting.some(isQuestion) ? (['question'] as const) : []),
  ];
}

/** Ready calls in call order, within the concurrency; an exclusive one only alone. */
function selectStartable(open: CallState[], facts: ActionFacts): CallState[] {
  const chosen: CallState[] = [];
  const running = open.filter((call) => facts.inFlight.has(call.key));
  if (running.some(facts.isExclusive)) return chosen;
  for (const call of open) {
    if (call.status !== 'ready') continue;
    if (running.length + chosen.length >= facts.toolConcurrency) break;
    if (facts.isExclusive(call)) {
      if (running.length + chosen.length === 0) chosen.push(call);
      break;
    }
    chosen.push(call);
  }
  return chosen;
}

function unfinishedModel(state: RunState, facts: ActionFacts): NextAction {
  const model = state.model as NonNullable<RunState['model']>;
  if (facts.inFlight.has(model.key)) return { do: 'await' };
  const held = heldBack(state, facts);
  if (held) return held;
  if (model.failures >= facts.maxModelAttempts)
    return fail(
      state,
      'MODEL_RETRIES_EXHAUSTED',
      `The model call failed ${model.failures} times; modelRetry.maxAttempts allows no more.`,
    );
  return { do: 'call_model', key: model.key, attempt: model.attempts + 1 };
}

/**
 * What a recorded reply leads to whose calls (if any) are all answered; null = the loop continues. Replies that ended
 * badly are failed attempts instead.
 */
function endOfReply(state: RunState, facts: ActionFacts): NextAction | null {
  if (state.finishReason === 'pause' || state.calls.length > 0 || state.messages.at(-1)?.role !== 'assistant')
    return null;
  const text = latestText(state);
  return { do: 'complete', output: text === '' && !facts.allowEmptyAnswer ? null : text };
}

function fail(state: RunState, code: string, message: string): NextAction {
  const text = latestText(state);
  return { do: 'fail', error: recordedFailure(code, message), output: text === '' ? null : text };
}

function tooManyOperations(state: RunState, facts: ActionFacts): NextAction {
  return fail(
    state,
    'LIMIT_EXCEEDED',
    `The run has ${state.operations.size} operations; maxOperations allows ${facts.maxOperations}. Raise maxOperations of AgentRunsModule and retry the run.`,
  );
}

function driftAttention(key: string): Attention {
  return {
    reason: 'input_drift',
    operationKey: key,
    operations: [key],
    detail: recordedText(
      `What operation ${key} would be given now differs from what was recorded when it was begun. Restore the earlier messages of its session, or cancel the run.`,
    ),
  };
}

/** Refused by the check right before its first execution. */
function isUntouched({ problem, interruptedBy, methodInteractions, steps }: CallState): boolean {
  return (
    problem?.reason === 'input_drift' && interruptedBy === null && methodInteractions.length === 0 && steps.size === 0
  );
}

function uncertainAttention(blocked: CallState[]): Attention {
  const [first] = blocked as [CallState, ...CallState[]];
  const names = blocked.map((call) => `${call.key} (${call.name})`).join(', ');
  const special = blocked.find((call): call is CallState & { problem: object } => call.problem !== null);
  return {
    reason: special?.problem.reason ?? 'uncertain_outcome',
    operationKey: first.key,
    operations: blocked.map((call) => call.key),
    detail: recordedText(
      special
        ? `${names}: ${special.problem.detail}. ${
            isUntouched(special)
              ? 'It was not begun: bring the earlier definition back and resolve the operation as not happened, or resolve it as it is.'
              : 'Its effect may have happened; look it up and resolve the operation.'
          }`
        : `${names}: interrupted, and its effect may or may not have happened. Look it up and resolve the operation.`,
    ),
  };
}

/** The operations an action begins. */
export function keysOf(action: NextAction): string[] {
  if (action.do === 'call_model') return [action.key];
  return action.do === 'start_calls' ? action.calls.map(({ key }) => key) : [];
}
