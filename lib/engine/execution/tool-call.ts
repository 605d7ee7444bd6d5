/**
 * One execution of a tool call, and what its end means for the journal. The intent is committed before this is called (I1);
 * the lease is checked again at the very moment the method is entered.
 */
import type { JournalEntry, ToolDenied, ToolFailed } from '../../contracts/journal-entry.js';
import type { EnteredContext, EnteredTransaction, ToolContext } from '../../contracts/ports/tool-caller.port.js';
import type { RunRecord } from '../../contracts/run.js';
import type { ToolDefinition } from '../../contracts/tool-definition.js';
import { AgentRunsError } from '../../errors/agent-runs.error.js';
import { StoreUnavailableError } from '../../errors/store/store-unavailable.error.js';
import type { CallState } from '../journal/run-state.js';
import type { InteractionDraft } from '../interactions.js';
import { decideRecovery } from '../recovery-decision.js';
import { DurableToolContext, type InsidePorts } from './durable-tool-context.js';
import { normaliseResult } from '../values/normalise-result.js';
import { recordedError, recordedFailure, recordedText } from '../values/recorded-error.js';
import { thrownStack } from '../values/thrown-stack.js';
import { thrownProperty } from '../values/thrown-value.js';
import { unlessBegun } from './recheck-call.js';
import { timedCall, type CallPlace, type RestartLimit } from './timed-call.js';

/** How an execution ended. `entries` is empty when it should run again or was never begun. */
export type CallEnd =
  | { end: 'result'; entries: JournalEntry[] }
  /** The method was not entered: the intent is taken back. */
  | { end: 'released' }
  /** Cut by ourselves in the middle: no result, so recovery decides. */
  | { end: 'cut' }
  /** The method asked somebody and left. */
  | { end: 'asked'; ask: InteractionDraft; entry: JournalEntry }
  /** Timed out, and the policy allows one more execution under the same key. */
  | { end: 'again' }
  /** Timed out; the probe may be asked once this promise or a lease has passed. */
  | { end: 'probe'; zombie: Promise<void> };

export interface CallEnvironment {
  ports: CallPlace['ports'];
  run: Pick<RunRecord, 'id' | 'sessionId' | 'agent' | 'actor'>;
  maxPayloadBytes: number;
  /** Whether this process may begin an effect now. */
  mayAct: () => boolean;
  /** How long this process has just stood still, in ms. */
  standstillMs: () => number;
  /** What the inside of a method needs of the attempt. */
  inside: InsidePorts;
  warn: (message: string, fields: Record<string, unknown>) => void;
}

/** Thrown into the host's pipeline when the lease was lost between intent and entry. */
class NotEntered extends Error {}

/** What the method's result becomes; null when it cannot be recorded. */
export type Outcome = { entry: JournalEntry } | { unserialisable: string };

export interface CallWays {
  /** Runs when the method is entered; a transaction is opened here. */
  onEnter: () => Promise<EnteredTransaction | void>;
  /** Ms that `onEnter` may take; null = no limit. Default null. */
  openWithinMs?: number | null;
  /** Ms; default the tool's timeout. It counts for the guards and pipes, and anew for the method. */
  limitMs?: number;
  /** Whether what the method threw is the caller's business rather than a result. */
  rethrow?: (error: unknown) => boolean;
  /** Runs the method so that the store recognises its own calls from inside it; default directly. */
  within?: <T>(body: () => T) => T;
}

/** Runs the method once. Throws only what is no result: store trouble (a transaction that is not opened in time included), and what `rethrow` claims. */
export async function executeCall(
  environment: CallEnvironment,
  tool: ToolDefinition,
  call: CallState,
  controller: AbortController,
  { onEnter, openWithinMs = null, limitMs = tool.timeoutMs ?? undefined, rethrow, within = (body) => body() }: CallWays,
): Promise<CallEnd> {
  const { run } = environment;
  const { clock } = environment.ports;
  const isTransactional = tool.recovery === 'transactional';
  let entered = false;
  let refused = false;
  let opening = false;
  const inside = new DurableToolContext(call, environment.inside, isTransactional);
  const context: ToolContext = Object.freeze({
    ...inside.context(),
    runId: run.id,
    sessionId: run.sessionId,
    agent: run.agent,
    operationId: `${run.id}/${call.key}`,
    callId: call.callId,
    attempt: call.attempts,
    signal: controller.signal,
    deadline: limitMs === undefined ? null : new Date(clock.now() + limitMs),
    actor: run.actor,
  });
  const invoke = (restart: RestartLimit): Promise<unknown> =>
    tool.caller.call(structuredClone(call.input), context, {
      given: call.given,
      onEnter: async () => {
        const requireEntry = (): void => {
          refused = !environment.mayAct() || controller.signal.aborted;
          if (refused) throw new NotEntered('the run may not begin this call now');
        };
        requireEntry();
        // The method is not to be blamed for what others took before: waiting for a connection has a limit of its own, and its time begins with it.
        opening = true;
        restart(openWithinMs);
        const addition = await onEnter();
        opening = false;
        // Opening a transaction takes time, in which the lease or the patience may have ended.
        requireEntry();
        entered = true;
        restart(limitMs ?? null);
        return enteredWith(addition, context, limitMs === undefined ? null : new Date(clock.now() + limitMs));
      },
    });
  const place = { ports: environment.ports, runId: run.id, isTransactional };
  const result = await timedCall(place, limitMs ?? null, controller, (restart) => within(() => invoke(restart)));
  tellOfStandstill(environment, tool, call);
  if (result.ended === 'timed_out') {
    inside.close();
    if (opening)
      throw new StoreUnavailableError(`The transaction of ${tool.name} was not open within ${openWithinMs} ms.`);
    return timedOut(environment, tool, call, entered, limitMs as number, result.zombie);
  }
  if (refused) return { end: 'released' };
  // What the method did after it asked, or after it met a step nobody may repeat, counts for nothing.
  const left = await inside.end();
  if (left) return left;
  if (result.ended === 'threw') {
    if (entered && controller.signal.aborted) return { end: 'cut' };
    if (!entered && controller.signal.aborted) return { end: 'released' };
    const isOurs = isStoreTrouble(result.error, entered);
    if (isOurs && entered && call.attempts >= MAX_TRIES_IN_TROUBLE)
      return givenUp(environment.ports, call, result.error);
    if (isOurs || rethrow?.(result.error)) throw result.error;
    const refusal = refusalOf(environment, tool, call, result.error);
    return { end: 'result', entries: [entered ? refusal : unlessBegun(call, refusal, reasonOf(refusal))] };
  }
  return { end: 'result', entries: [recordOutcome(environment, tool, call, result.value)] };
}

/** How often a method is begun that lets trouble of a store out, before that counts as an error of its own. */
const MAX_TRIES_IN_TROUBLE = 5;

/** The journal could be written each time: what the method meets is not the store that this run lives in, or only when the method uses it. */
function givenUp({ clock }: CallPlace['ports'], call: CallState, thrown: unknown): CallEnd {
  const { message, ...error } = recordedError(thrown, 'TOOL_FAILED');
  const named = recordedText(`The tool was begun ${call.attempts} times and failed each time, lastly with: ${message}`);
  return {
    end: 'result',
    entries: [
      { type: 'tool.failed', at: clock.now(), key: call.key, outcome: 'error', error: { ...error, message: named } },
    ],
  };
}

/** A copy of the context only where something changed on the way to the method. */
function enteredWith(
  addition: EnteredTransaction | void,
  { deadline: announced }: ToolContext,
  deadline: Date | null,
): EnteredContext | void {
  if (deadline === null || deadline.getTime() === announced?.getTime()) return addition;
  return { ...addition, deadline };
}

/** No timer came while the method did not yield: no renewal of the lease, no timeout, and nothing for all other runs. */
function tellOfStandstill({ run, standstillMs, warn }: CallEnvironment, tool: ToolDefinition, call: CallState): void {
  const delayMs = standstillMs();
  if (delayMs > 0)
    warn('this process stood still while a tool was at work; timers were late', {
      runId: run.id,
      operation: call.key,
      tool: tool.name,
      delayMs,
    });
}

/**
 * Ours before the method is entered (its transaction could not be opened). What a method lets out is ours only where it passes: a tool that meets another
 * run's corrupt journal, or another broken store, has met an error of its own.
 */
function isStoreTrouble(error: unknown, entered: boolean): boolean {
  return AgentRunsError.is(error) && error.family === 'store' && (!entered || error.retryable);
}

function reasonOf(refusal: ToolFailed | ToolDenied): string {
  return refusal.type === 'tool.failed' ? refusal.error.message : (refusal.reason ?? 'denied');
}

function refusalOf(
  { ports: { clock }, run, warn }: CallEnvironment,
  tool: ToolDefinition,
  call: CallState,
  error: unknown,
): ToolFailed | ToolDenied {
  const at = clock.now();
  const fault = faultBehind(error);
  if (fault !== null)
    warn('a tool failed', { runId: run.id, operation: call.key, tool: tool.name, stack: thrownStack(fault.thrown) });
  if (AgentRunsError.is(error, 'TOOL_DENIED'))
    return { type: 'tool.denied', at, key: call.key, by: 'guard', reason: recordedText(error.message) };
  if (AgentRunsError.is(error, 'INVALID_ARGUMENTS'))
    return {
      type: 'tool.failed',
      at,
      key: call.key,
      outcome: 'invalid_arguments',
      error: recordedFailure(error.code, error.message),
    };
  return { type: 'tool.failed', at, key: call.key, outcome: 'error', error: recordedError(error, 'TOOL_FAILED') };
}

/** What the host's code threw without meaning to answer; null for a refusal, whether of a guard, of a pipe or of a person. */
function faultBehind(error: unknown): { thrown: unknown } | null {
  if (AgentRunsError.is(error, 'APPROVAL_DENIED') || AgentRunsError.is(error, 'QUESTION_NOT_ANSWERED')) return null;
  if (!AgentRunsError.is(error, 'TOOL_DENIED') && !AgentRunsError.is(error, 'INVALID_ARGUMENTS'))
    return { thrown: error };
  // An exception made for callers has a response; anything else in a guard or a pipe is a mistake.
  const isMeant = error.cause === undefined || thrownProperty(error.cause, 'getResponse') !== undefined;
  return isMeant ? null : { thrown: error.cause };
}

/** What the method returned, normalised once; or, where that has no JSON form, what follows from it. */
function recordOutcome(
  environment: CallEnvironment,
  tool: ToolDefinition,
  call: CallState,
  value: unknown,
): JournalEntry {
  const at = environment.ports.clock.now();
  const normalised = normaliseResult(value, { maxBytes: environment.maxPayloadBytes });
  if (normalised.ok)
    return {
      type: 'tool.completed',
      at,
      key: call.key,
      output: normalised.value,
      ...(normalised.notes.length > 0 && { notes: normalised.notes }),
    };
  const problem = `${normalised.problem} at ${normalised.path}`;
  // A read can simply be reported; a transaction is rolled back by the caller. Anything else may have had its effect.
  const recovery = call.recovery ?? tool.recovery;
  if (recovery === 'safe' || recovery === 'transactional' || tool.recovery === 'transactional') {
    return {
      type: 'tool.failed',
      at,
      key: call.key,
      outcome: 'error',
      error: recordedFailure('UNSERIALISABLE_RESULT', `The tool returned what cannot be recorded: ${problem}.`),
    };
  }
  return {
    type: 'tool.uncertain',
    at,
    key: call.key,
    interruptedBy: null,
    reportedToModel: false,
    problem: recordedText(`the tool returned what cannot be recorded (${problem})`),
    reason: 'unserialisable_result',
  };
}

function timedOut(
  environment: CallEnvironment,
  tool: ToolDefinition,
  call: CallState,
  entered: boolean,
  limitMs: number,
  zombie: Promise<void>,
): CallEnd {
  const at = environment.ports.clock.now();
  const late = entered ? 'The tool' : 'What comes before the tool (guards, pipes, interceptors)';
  const error = recordedFailure('TOOL_TIMED_OUT', `${late} did not finish within ${limitMs} ms.`);
  const failed = {
    end: 'result' as const,
    entries: [{ type: 'tool.failed', at, key: call.key, outcome: 'error', error }] satisfies [ToolFailed],
  };
  environment.warn('a tool did not finish in time', {
    runId: environment.run.id,
    operation: call.key,
    tool: tool.name,
    limitMs,
  });
  if (!entered) return { end: 'result', entries: [unlessBegun(call, failed.entries[0], error.message)] };
  void zombie.then(() =>
    environment.warn('a tool ended after its timeout; its result was discarded', {
      runId: environment.run.id,
      operation: call.key,
      tool: tool.name,
    }),
  );
  switch (
    decideRecovery({
      stored: call.recovery ?? tool.recovery,
      current: tool.recovery,
      interruptedBy: 'timeout',
      attempts: call.attempts,
    })
  ) {
    case 'repeat':
      return { end: 'again' };
    case 'probe':
      return { end: 'probe', zombie };
    case 'inform':
      return {
        end: 'result',
        entries: [{ type: 'tool.uncertain', at, key: call.key, interruptedBy: 'timeout', reportedToModel: true }],
      };
    case 'attention':
      return {
        end: 'result',
        entries: [{ type: 'tool.uncertain', at, key: call.key, interruptedBy: 'timeout', reportedToModel: false }],
      };
    case 'error':
      return failed;
  }
}
