import type { InteractionDecision } from '../../contracts/interaction.js';
import type { CallVerdict, EntryOf, JournalEntry } from '../../contracts/journal-entry.js';
import type { JsonObject, JsonValue } from '../../contracts/json.js';
import type { ToolMessage, ToolOutcome } from '../../contracts/message.js';
import type { Operation } from '../../contracts/operation.js';
import { mayHaveActed, type CallState, type RunState } from './run-state.js';

/** Entries about one call of the latest reply. */
export type CallEntry = Extract<JournalEntry, { type: `tool.${string}` | `interaction.${string}` }>;

/** A call as its reply was committed. @param given the arguments as the model gave them */
export function newCall(verdict: CallVerdict, given: JsonObject): CallState {
  const { key, callId, name, toolVersion, recovery, approval = null, questions = null } = verdict;
  return {
    key,
    callId,
    name,
    toolVersion,
    recovery,
    given,
    input: verdict.input ?? given,
    edits: [],
    approval,
    questions,
    interactionId: null,
    methodInteractions: [],
    withdrawn: 0,
    steps: new Map(),
    status: approval || questions ? 'waiting' : 'ready',
    attempts: 0,
    openAttempts: 0,
    interruptedBy: null,
    problem: null,
    outcome: null,
    output: null,
  };
}

/** @throws Error for a key that is none of the latest reply */
export function callOf(state: RunState, key: string): CallState {
  const call = state.calls.find((candidate) => candidate.key === key);
  if (call) return call;
  throw new Error(`the journal of run ${state.runId} names operation ${key}, which is no call of its latest reply`);
}

/** Folds one entry about a call. */
export function foldCall(state: RunState, entry: CallEntry): void {
  const call = callOf(state, entry.key);
  switch (entry.type) {
    case 'tool.started':
      return started(state, call, entry);
    case 'tool.released':
      call.openAttempts -= 1;
      return reopen(state, call);
    case 'interaction.requested':
      // One of the method itself comes with its `tool.waiting`.
      if (call.methodInteractions.some(({ interactionId }) => interactionId === entry.interactionId)) return;
      call.status = 'waiting';
      call.interactionId = entry.interactionId;
      return;
    case 'interaction.answered':
    case 'interaction.expired':
      return decided(state, call, entry);
    case 'tool.waiting': {
      const { interactionId, kind, digest, ordinal } = entry;
      call.status = 'waiting';
      call.methodInteractions[ordinal] = { interactionId, kind, digest, decision: null };
      return update(state, call.key, { status: 'waiting' });
    }
    case 'tool.step_started':
      call.steps.set(entry.step, { status: 'started', recovery: entry.recovery ?? 'manual' });
      return;
    case 'tool.step_completed':
      call.steps.set(
        entry.step,
        entry.error ? { status: 'failed', error: entry.error } : { status: 'completed', output: entry.output ?? null },
      );
      return;
    case 'tool.completed':
      return finish(state, call, 'success', entry.output, entry.at);
    case 'tool.failed':
      return finish(state, call, entry.outcome, entry.error.message, entry.at);
    case 'tool.denied':
      return finish(state, call, 'denied', refusalText('Denied', entry.by, entry.reason), entry.at);
    case 'tool.uncertain':
      if (entry.reportedToModel) return finish(state, call, 'unknown', UNKNOWN_OUTCOME, entry.at);
      call.status = 'uncertain';
      call.interruptedBy = entry.interruptedBy;
      call.problem =
        entry.problem === undefined ? null : { detail: entry.problem, reason: entry.reason ?? 'uncertain_outcome' };
      return update(state, call.key, {
        status: 'uncertain',
        ...(entry.interruptedBy && { interruptedBy: entry.interruptedBy }),
      });
    case 'tool.resolved':
      if ('output' in entry.resolution) return finish(state, call, 'success', entry.resolution.output, entry.at);
      if ('error' in entry.resolution) return finish(state, call, 'error', entry.resolution.error.message, entry.at);
      return reopenUndone(state, call);
    case 'tool.probed':
      if (entry.result === 'happened') return finish(state, call, 'success', entry.output ?? null, entry.at);
      if (entry.result === 'did-not-happen') reopenUndone(state, call);
  }
}

/**
 * The interactions of a failed run were withdrawn with it, and their decisions are still wanted: the run asks again
 * before it begins a call, a method asks again when it is entered.
 */
export function askAgain(state: RunState, call: CallState): void {
  if (call.status !== 'waiting') return;
  call.withdrawn += 1;
  call.interactionId = null;
  if (call.methodInteractions.pop()) reopen(state, call);
}

/** The results of a reply as one message, in call order (I5). @param replyKey of the model operation */
export function resultsOf({ runId, calls }: RunState, replyKey: string): ToolMessage {
  return {
    role: 'tool',
    id: `${runId}/${replyKey}/results`,
    content: calls.map(({ callId, name, outcome, output, edits }) => ({
      type: 'tool-result',
      callId,
      name,
      outcome: outcome as ToolOutcome,
      output,
      ...(edits.length > 0 && { edits }),
    })),
  };
}

export function update(state: RunState, key: string, change: Partial<Operation>): void {
  const known = state.operations.get(key);
  if (known) Object.assign(known, change);
}

function started(
  state: RunState,
  call: CallState,
  { key, attempt, recovery, digest, at }: EntryOf<'tool.started'>,
): void {
  call.status = 'started';
  call.attempts = attempt;
  call.openAttempts += 1;
  call.recovery = recovery;
  call.interruptedBy = null;
  const startedAt = state.operations.get(key)?.startedAt ?? at;
  update(state, key, { status: 'started', attempts: attempt, recovery, argumentsDigest: digest, startedAt });
}

/** What a person decided about a call, or answered it. */
function decided(
  state: RunState,
  call: CallState,
  { interactionId, decision, at }: EntryOf<'interaction.answered' | 'interaction.expired'>,
): void {
  const isApproved = 'decision' in decision && decision.decision === 'approve';
  if (isApproved && decision.arguments) {
    const { by, note, arguments: edited } = decision;
    call.edits.push({ by, ...(note !== undefined && { note }), arguments: edited });
  }
  const own = call.methodInteractions.find((candidate) => candidate.interactionId === interactionId);
  if (own) {
    own.decision = decision;
    return reopen(state, call);
  }
  if ('action' in decision && decision.action === 'accept') return finish(state, call, 'success', decision.answers, at);
  if (!isApproved) return finish(state, call, 'denied', refusalText(verbOf(decision), decision.by, decision.note), at);
  if (decision.arguments) {
    call.input = decision.arguments;
    call.given = decision.givenArguments ?? decision.arguments;
  }
  reopen(state, call);
}

function reopen(state: RunState, call: CallState): void {
  call.status = 'ready';
  call.interruptedBy = null;
  call.problem = null;
  update(state, call.key, { status: 'waiting' });
}

/** It did not happen, and so neither did the step in which it was interrupted; those before it did. */
function reopenUndone(state: RunState, call: CallState): void {
  reopen(state, call);
  call.openAttempts = 0;
  for (const [step, { status }] of call.steps) if (status === 'started') call.steps.delete(step);
}

function finish(state: RunState, call: CallState, outcome: ToolOutcome, output: JsonValue, at: number): void {
  call.status = 'done';
  call.outcome = outcome;
  call.output = output;
  if (mayHaveActed(call)) state.effects.push({ name: call.name, input: call.input, outcome });
  state.totals = { ...state.totals, results: state.totals.results + 1 };
  update(state, call.key, { status: OPERATION_STATUS[outcome], outcome, output, finishedAt: at });
}

function verbOf(decision: InteractionDecision): string {
  if ('decision' in decision) return 'Denied';
  return decision.action === 'decline' ? 'Declined' : 'Cancelled';
}

function refusalText(verb: string, by: string, note: string | undefined): string {
  return note === undefined ? `${verb} by ${by}.` : `${verb} by ${by}: ${note}`;
}

const UNKNOWN_OUTCOME =
  'The outcome of this call is unknown: it was interrupted and may or may not have taken effect. It was not repeated. Do not assume either; check before you call it again.';

const OPERATION_STATUS: Readonly<Record<ToolOutcome, Operation['status']>> = {
  success: 'completed',
  error: 'failed',
  denied: 'denied',
  unknown: 'uncertain',
  invalid_arguments: 'failed',
  unknown_tool: 'failed',
  cancelled: 'cancelled',
  not_executed: 'not_run',
};
