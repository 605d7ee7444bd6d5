/**
 * What a run does next, decided from its folded journal alone (JRN-4). Pure: no clock, no store, nothing of the user's code.
 * Kept here: I1 (the caller commits the intents this names before acting) and I5 (no model request while a call owes its result).
 */
import type { JsonValue } from '../contracts/json.js';
import type { RunError } from '../contracts/run.js';
import type { Attention } from '../contracts/run-status.js';
import type { CallState, RunState } from './journal/run-state.js';

export type NextAction =
  | { do: 'call_model'; key: string; attempt: number }
  | { do: 'start_calls'; calls: CallState[] }
  /** Something is in flight; its result decides. */
  | { do: 'await' }
  | { do: 'suspend'; calls: CallState[] }
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
  truncatedCalls: 'feedback' | 'fail';
  /** Whether a call must have the run to itself (a `transactional` one). */
  isExclusive: (call: CallState) => boolean;
}

/** A model that is told twice in a row that its calls were cut off, and does it again, will not stop. */
const MAX_TRUNCATED_REPLIES = 2;

export function nextAction(state: RunState, facts: ActionFacts): NextAction {
  if (state.drift !== null) return { do: 'call_attention', attention: driftAttention(state.drift) };
  const open = state.calls.filter((call) => call.status !== 'done');
  if (open.length > 0) return openCalls(state, open, facts);
  if (state.model) return unfinishedModel(state, facts);
  const ended = state.finishReason === null ? null : endOfReply(state, facts);
  if (ended) return ended;
  if (state.totals.turn >= facts.maxTurns) {
    return fail(
      state,
      'MAX_TURNS_EXCEEDED',
      `The run made ${state.totals.turn} model calls, the limit of its agent (maxTurns). Raise it or give the agent a smaller task.`,
    );
  }
  if (state.operations.size >= facts.maxOperations) return tooManyOperations(state, facts);
  return { do: 'call_model', key: `r${state.part}.m${state.modelOperations + 1}`, attempt: 1 };
}

function openCalls(state: RunState, open: CallState[], facts: ActionFacts): NextAction {
  if (state.operations.size > facts.maxOperations)
    return facts.inFlight.size > 0 ? { do: 'await' } : tooManyOperations(state, facts);
  const startable = selectStartable(open, facts);
  if (startable.length > 0) return { do: 'start_calls', calls: startable };
  if (facts.inFlight.size > 0) return { do: 'await' };
  const blocked = open.filter((call) => call.status === 'uncertain');
  if (blocked.length > 0) return { do: 'call_attention', attention: uncertainAttention(blocked) };
  return { do: 'suspend', calls: open.filter((call) => call.status === 'waiting') };
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
  if (model.failures >= facts.maxModelAttempts)
    return fail(
      state,
      'MODEL_RETRIES_EXHAUSTED',
      `The model call failed ${model.failures} times; modelRetry.maxAttempts allows no more.`,
    );
  return { do: 'call_model', key: model.key, attempt: model.attempts + 1 };
}

/** What a reply whose calls (if any) are all answered leads to; null = the loop goes on. MOD-3, decision 25. */
function endOfReply(state: RunState, facts: ActionFacts): NextAction | null {
  const latest = state.messages.at(-1);
  const hasCalls = state.calls.length > 0;
  switch (state.finishReason) {
    case 'refusal':
    case 'content-filter':
      return fail(state, 'MODEL_REFUSED', `The model refused to answer (${state.finishReason}).`);
    case 'error':
      return fail(state, 'MODEL_CALL_FAILED', 'The model ended its reply with an error.');
    case 'length':
      if (hasCalls && facts.truncatedCalls === 'feedback' && state.truncatedReplies < MAX_TRUNCATED_REPLIES)
        return null;
      return fail(
        state,
        'OUTPUT_TRUNCATED',
        'The reply was cut at the output limit; calls in it were not executed. Raise the limit of the model or ask for less.',
      );
    default:
      if (hasCalls || latest?.role !== 'assistant') return null;
      return { do: 'complete', output: textOf(state) };
  }
}

/** The text of the latest reply. */
export function textOf(state: RunState): string {
  for (let index = state.messages.length - 1; index >= state.historyLength; index--) {
    const message = state.messages[index];
    if (message?.role === 'assistant')
      return message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
  }
  return '';
}

function fail(state: RunState, code: string, message: string): NextAction {
  const text = textOf(state);
  return { do: 'fail', error: { code, message }, output: text === '' ? null : text };
}

function tooManyOperations(state: RunState, facts: ActionFacts): NextAction {
  return fail(
    state,
    'LIMIT_EXCEEDED',
    `The run has ${state.operations.size} operations; maxOperations allows ${facts.maxOperations}.`,
  );
}

function driftAttention(key: string): Attention {
  return {
    reason: 'input_drift',
    operationKey: key,
    operations: [key],
    detail: `What operation ${key} would be given now differs from what was recorded when it was begun. Restore the earlier messages of its session, or cancel the run.`,
  };
}

function uncertainAttention(blocked: CallState[]): Attention {
  const [first] = blocked as [CallState, ...CallState[]];
  const names = blocked.map((call) => `${call.key} (${call.name})`).join(', ');
  const unserialisable = blocked.find((call) => call.problem !== null);
  return {
    reason: unserialisable ? 'unserialisable_result' : 'uncertain_outcome',
    operationKey: first.key,
    operations: blocked.map((call) => call.key),
    detail: unserialisable
      ? `${names}: the tool returned what cannot be recorded (${unserialisable.problem}). Its effect may have happened; settle it with resolveTool.`
      : `${names}: interrupted, and its effect may or may not have happened. Look it up and settle it with resolveTool.`,
  };
}
