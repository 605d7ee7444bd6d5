import type { EntryOf, JournalEntry } from '../../contracts/journal-entry.js';
import { copyJson, type JsonObject } from '../../contracts/json.js';
import type { ToolTransaction } from '../../contracts/ports/run-store.port.js';
import type {
  EnteredContext,
  EnteredTransaction,
  ToolContext,
  ToolEntry,
} from '../../contracts/ports/tool-caller.port.js';
import type { ToolDefinition } from '../../contracts/agent-definition.js';
import { StoreUnavailableError } from '../../errors/store.errors.js';
import { failureOf, isOfStore, type Failure } from '../failure.js';
import type { InteractionDraft } from '../interactions.js';
import type { CallState } from '../journal/run-state.js';
import { decideRecovery } from '../recovery-decision.js';
import type { StopSwitch } from '../stop-switch.js';
import { timedCall, type LimitedCall } from '../timed-call.js';
import { normaliseResult } from '../values/normalise-result.js';
import { recordedError, recordedFailure, recordedText, thrownProperty, thrownStack } from '../values/recorded-error.js';
import { leasePart } from '../worker-lease.js';
import type { Attempt } from './attempt.js';
import { failedCall, uncertainCall, unlessBegun } from './call-entries.js';
import { DurableToolContext } from './durable-tool-context.js';

/** How an execution ended. */
export type CallEnd =
  | { end: 'result'; entry: JournalEntry }
  /** The method was not entered: the intent is taken back. */
  | { end: 'released' }
  /** Aborted by ourselves in the middle: no result, so recovery decides. */
  | { end: 'aborted' }
  /** The method asked for a decision and was left. */
  | { end: 'suspended'; ask: InteractionDraft; entry: JournalEntry }
  /** Timed out, and the policy allows one more execution under the same key. */
  | { end: 'retry' }
  /** Timed out; the probe may be asked once this promise or a lease has passed. */
  | { end: 'probe'; zombie: Promise<void> };

/** How often a method is begun that lets trouble of a store out, before that counts as an error of its own. */
const MAX_TRIES_IN_TROUBLE = 5;

/** Thrown into the host's pipeline when the lease was lost between intent and entry. */
class NotEntered extends Error {}

/**
 * One execution of a tool call, whose intent is committed (I1). The lease is checked again at the very moment the
 * method is entered. A time limit counts for guards and pipes, and anew for the method.
 */
export class ToolExecution implements ToolEntry {
  readonly given: JsonObject;
  private readonly limitMs: number | null;
  private readonly inside: DurableToolContext;
  private readonly context: ToolContext;
  private limited: LimitedCall | null = null;
  private isOpening = false;
  private isRefused = false;
  private isEntered = false;

  constructor(
    private readonly attempt: Attempt,
    private readonly tool: ToolDefinition,
    private readonly call: CallState,
    private readonly controller: StopSwitch,
    private readonly transaction: ToolTransaction | null = null,
  ) {
    const { run } = attempt;
    this.given = call.given;
    this.limitMs = transaction ? Math.min(tool.timeoutMs ?? Infinity, tool.transactionTimeoutMs) : tool.timeoutMs;
    this.inside = new DurableToolContext(attempt, call, transaction !== null);
    this.context = Object.freeze({
      runId: run.id,
      sessionId: run.sessionId,
      agent: run.agent,
      operationId: `${run.id}/${call.key}`,
      callId: call.callId,
      attempt: call.attempts,
      get signal() {
        return controller.signal;
      },
      deadline: this.deadline(),
      actor: run.actor,
      ...this.inside.context(),
    });
  }

  /**
   * Runs the method once.
   * @throws what is no result: store trouble, which a transaction that is not opened in time is too, and conflicts of
   * the transaction
   */
  async run(): Promise<CallEnd> {
    const { attempt, call, transaction } = this;
    const place = { ports: attempt.ports, runId: attempt.run.id, isTransactional: transaction !== null };
    const result = await timedCall(
      place,
      this.limitMs,
      (limited) => {
        this.limited = limited;
        return transaction?.enter ? transaction.enter(() => this.invoke()) : this.invoke();
      },
      this.controller,
    );
    const { standstillMs: delayMs } = attempt;
    // No timer came while the method did not yield: no renewal of the lease, no timeout, and nothing for all other
    // runs.
    if (delayMs > 0)
      attempt.warn('this process stood still while a tool was at work; timers were late', call, { delayMs });
    if (result.ended === 'timed_out') return this.timedOut(result.zombie);
    if (this.isRefused) return { end: 'released' };
    // What the method did after it asked, or after it met a step that must not be repeated, counts for nothing.
    const left = await this.inside.end();
    if (left) return left;
    if (result.ended === 'returned') return { end: 'result', entry: this.outcomeOf(result.value) };
    if (this.controller.isAborted) return { end: this.isEntered ? 'aborted' : 'released' };
    return { end: 'result', entry: this.thrown(result.error) };
  }

  private invoke(): Promise<unknown> {
    return this.tool.caller.call(copyJson(this.call.input), this.context, this);
  }

  /** Called by the pipeline once guards and pipes have passed. */
  async onEnter(): Promise<EnteredContext | void> {
    this.requireEntry();
    let addition: EnteredTransaction | undefined;
    if (this.transaction) {
      // Waiting for a connection has a limit of its own, which is not counted as the method's time.
      this.isOpening = true;
      this.limited?.restart(this.openWithinMs());
      addition = { manager: await this.transaction.begin() };
      this.isOpening = false;
      // Opening takes time, in which the lease or the patience may have ended.
      this.requireEntry();
    }
    this.isEntered = true;
    this.limited?.restart(this.limitMs);
    const deadline = this.deadline();
    // A copy of the context only where something changed on the way to the method.
    if (deadline === null || deadline.getTime() === this.context.deadline?.getTime()) return addition;
    return { ...addition, deadline };
  }

  private requireEntry(): void {
    this.isRefused = !this.attempt.canStartEffects() || this.controller.isAborted;
    if (this.isRefused) throw new NotEntered('the run may not begin this call now');
  }

  /** Ms that opening a transaction may take. */
  private openWithinMs(): number {
    return leasePart(this.attempt.ports.options, 'renewal');
  }

  private deadline(): Date | null {
    return this.limitMs === null ? null : new Date(this.now() + this.limitMs);
  }

  private now(): number {
    return this.attempt.ports.clock.now();
  }

  /** The entry for a thrown error. @throws the error where it is no result of the call */
  private thrown(error: unknown): JournalEntry {
    const { attempt, call } = this;
    const failure = failureOf(error);
    // Before the method is entered every trouble of the store is ours. A method may meet an error of its own: another
    // run's corrupt journal, another broken store.
    const isOurs = failure === 'unavailable' || (!this.isEntered && isOfStore(failure));
    if (isOurs && this.isEntered && call.attempts >= MAX_TRIES_IN_TROUBLE) {
      // The journal could be written each time: what the method meets is not the store that this run lives in, or only
      // when the method uses it.
      const { message, ...recorded } = recordedError(error, 'TOOL_FAILED');
      const tries = `The tool was begun ${call.attempts} times and failed each time, lastly with: ${message}`;
      return failedCall(call, this.now(), { ...recorded, message: recordedText(tries) });
    }
    if (isOurs || this.transaction?.isConflict(error)) throw error;
    const fault = faultBehind(error, failure);
    if (fault) attempt.warn('a tool failed', call, { stack: thrownStack(fault.thrown) });
    const refusal = this.refusalOf(error, failure);
    if (this.isEntered) return refusal;
    const why = refusal.type === 'tool.failed' ? refusal.error.message : (refusal.reason ?? 'denied');
    return unlessBegun(call, refusal, why);
  }

  private refusalOf(error: unknown, failure: Failure): EntryOf<'tool.failed'> | EntryOf<'tool.denied'> {
    const { call } = this;
    const at = this.now();
    if (failure === 'denied')
      return { type: 'tool.denied', at, key: call.key, by: 'guard', reason: recordedText((error as Error).message) };
    if (failure === 'invalid_arguments') {
      const refused = recordedFailure('INVALID_ARGUMENTS', (error as Error).message);
      return failedCall(call, at, refused, 'invalid_arguments');
    }
    return failedCall(call, at, recordedError(error, 'TOOL_FAILED'));
  }

  /** What the method returned, normalised once; or, where that has no JSON form, what follows from it. */
  private outcomeOf(value: unknown): JournalEntry {
    const { call, tool, attempt } = this;
    const at = this.now();
    const normalised = normaliseResult(value, { maxBytes: attempt.ports.options.maxPayloadBytes });
    if (normalised.ok) {
      const { value: output, notes } = normalised;
      return { type: 'tool.completed', at, key: call.key, output, ...(notes.length > 0 && { notes }) };
    }
    const problem = `${normalised.problem} at ${normalised.path}`;
    const recovery = call.recovery ?? tool.recovery;
    // A read can simply be reported; a transaction is rolled back by the caller. Anything else may have had its effect.
    if (recovery === 'safe' || recovery === 'transactional' || tool.recovery === 'transactional') {
      const message = `The tool returned what cannot be recorded: ${problem}.`;
      return failedCall(call, at, recordedFailure('UNSERIALISABLE_RESULT', message));
    }
    return uncertainCall(call, at, null, {
      problem: recordedText(`the tool returned what cannot be recorded (${problem})`),
      reason: 'unserialisable_result',
    });
  }

  private timedOut(zombie: Promise<void>): CallEnd {
    const { attempt, tool, call, limitMs } = this;
    this.inside.close();
    if (this.isOpening)
      throw new StoreUnavailableError(`The transaction of ${tool.name} was not open within ${this.openWithinMs()} ms.`);
    const at = this.now();
    const late = this.isEntered ? 'The tool' : 'What comes before the tool (guards, pipes, interceptors)';
    const error = recordedFailure('TOOL_TIMED_OUT', `${late} did not finish within ${limitMs} ms.`);
    attempt.warn('a tool did not finish in time', call, { limitMs });
    if (!this.isEntered) return { end: 'result', entry: unlessBegun(call, failedCall(call, at, error), error.message) };
    void zombie.then(() => attempt.warn('a tool ended after its timeout; its result was discarded', call));
    const { recovery: current } = tool;
    const stored = call.recovery ?? current;
    const decision = decideRecovery({ stored, current, interruptedBy: 'timeout', attempts: call.attempts });
    if (decision === 'repeat') return { end: 'retry' };
    if (decision === 'probe') return { end: 'probe', zombie };
    if (decision === 'error') return { end: 'result', entry: failedCall(call, at, error) };
    return { end: 'result', entry: uncertainCall(call, at, 'timeout', { reportedToModel: decision === 'inform' }) };
  }
}

/**
 * What the host's code threw without meaning to answer; null for a refusal, whether of a guard, of a pipe or of a
 * person.
 */
function faultBehind(error: unknown, failure: Failure): { thrown: unknown } | null {
  if (failure === 'answered') return null;
  if (failure !== 'denied' && failure !== 'invalid_arguments') return { thrown: error };
  const cause = thrownProperty(error, 'cause');
  // An exception made for callers has a response; anything else in a guard or a pipe is a mistake.
  return cause === undefined || thrownProperty(cause, 'getResponse') !== undefined ? null : { thrown: cause };
}
