import type { Question } from '../../contracts/interaction.js';
import type { EntryOf, RecordedError } from '../../contracts/journal-entry.js';
import type { JsonObject, JsonOf, JsonValue } from '../../contracts/json.js';
import { isBlankText, isIdentifier } from '../../contracts/text.js';
import type {
  ApprovalGiven,
  ApprovalRequest,
  StepRecovery,
  ToolContext,
} from '../../contracts/ports/tool-caller.port.js';
import { stricterPolicy, type RecoveryPolicy } from '../../contracts/policies.js';
import { ApprovalDeniedError, QuestionNotAnsweredError } from '../../errors/run.errors.js';
import { StoreUnavailableError } from '../../errors/store.errors.js';
import { interactionDigest, deriveInteractionId, type InteractionDraft } from '../interactions.js';
import type { CallState } from '../journal/run-state.js';
import { normaliseResult } from '../values/normalise-result.js';
import { readQuestions } from '../values/read-questions.js';
import { recordedError, recordedFailure, recordedText } from '../values/recorded-error.js';
import type { Attempt } from './attempt.js';
import { uncertainCall } from './call-entries.js';
import type { CallEnd } from './tool-call.js';

/** Bytes of JSON text that an approver is shown as arguments. */
const MAX_SHOWN_BYTES = 1_048_576;

type Decision = NonNullable<CallState['methodInteractions'][number]['decision']>;

/** Leaves the method. Catching it changes nothing: the rest of the method is not recorded. */
class SuspendToolCall extends Error {
  constructor() {
    super('the method asked somebody; it is entered again when the answer is there');
    this.name = 'SuspendToolCall';
  }
}

/**
 * What a tool method can do in the middle of its work that outlives the process: ask a person, and do steps once. A
 * method that asks is left by a thrown signal and entered again later, from its beginning, under the same operation id;
 * what it asked and did before is answered from the journal.
 */
export class DurableToolContext {
  private asked = 0;
  private pending: { ask: InteractionDraft; digest: string } | null = null;
  private problem: Pick<EntryOf<'tool.uncertain'>, 'problem' | 'reason'> | null = null;
  private isClosed = false;
  /** Steps at work, by their keys. */
  private readonly working = new Map<string, Promise<unknown>>();

  /**
   * @param isTransactional refuses questions and steps: a transaction is rolled back as a whole, and waiting would hold
   * its lock
   */
  constructor(
    private readonly attempt: Attempt,
    private readonly call: CallState,
    private readonly isTransactional: boolean,
  ) {}

  context(): Pick<ToolContext, 'ask' | 'requestApproval' | 'step'> {
    return {
      ask: (questions) => handled(this.ask(questions)),
      requestApproval: (request) => handled(this.requestApproval(request)),
      step: (key, work, options) => handled(this.step(key, work, options?.recovery)),
    };
  }

  /** The call is over: later uses of its context are refused. */
  close(): void {
    this.isClosed = true;
  }

  /** How the call ends because of what the method asked or met, once its steps are done; null when it simply ended. */
  async end(): Promise<CallEnd | null> {
    if (this.working.size > 0) await Promise.allSettled(this.working.values());
    this.close();
    const { call, attempt, pending } = this;
    const at = this.now();
    if (this.problem) return { end: 'result', entry: uncertainCall(call, at, null, this.problem) };
    if (!pending) return null;
    const { ask, digest } = pending;
    const interactionId = deriveInteractionId(ask, call, attempt.run, attempt.ports.digester);
    const { kind } = ask;
    return {
      end: 'suspended',
      ask,
      entry: { type: 'tool.waiting', at, key: call.key, interactionId, kind, ordinal: ask.ordinal - 1, digest },
    };
  }

  private now(): number {
    return this.attempt.ports.clock.now();
  }

  private async ask(given: Question | readonly Question[]): Promise<JsonObject> {
    const read = readQuestions(Array.isArray(given) ? given : [given]);
    if (!read.ok) throw new TypeError(`context.ask: ${read.problems.join('; ')}`);
    const decision = this.decisionOf({
      kind: 'question',
      arguments: null,
      questions: read.questions,
      reason: null,
      risk: null,
      approverRole: null,
      expiresInMs: this.attempt.ports.options.approvalExpiresMs,
    });
    // A copy: the method may change it.
    if ('action' in decision && decision.action === 'accept') return structuredClone(decision.answers);
    throw new QuestionNotAnsweredError(`The question was not answered: ${refusalOf(decision)}.`, {
      details: { by: decision.by },
    });
  }

  private async requestApproval(request: ApprovalRequest): Promise<ApprovalGiven> {
    const decision = this.decisionOf(readApprovalRequest(request, this.attempt.ports.options.approvalExpiresMs));
    if ('decision' in decision && decision.decision === 'approve') {
      const { by, note, arguments: edited } = decision;
      return { by, ...(note !== undefined && { note }), ...(edited && { arguments: structuredClone(edited) }) };
    }
    throw new ApprovalDeniedError(`Not approved: ${refusalOf(decision)}.`, { details: { by: decision.by } });
  }

  /** The recorded decision under the next ordinal; leaves the method when there is none yet. */
  private decisionOf(asking: Omit<InteractionDraft, 'ordinal'>): Decision {
    this.requireInside();
    const ask: InteractionDraft = { ...asking, ordinal: ++this.asked };
    const digest = interactionDigest(ask, this.call, this.attempt.run, this.attempt.ports.digester);
    const recorded = this.call.methodInteractions[ask.ordinal - 1];
    if (!recorded) {
      this.pending = { ask, digest };
      throw new SuspendToolCall();
    }
    if (recorded.digest !== digest)
      throw this.block(
        `its ask number ${ask.ordinal} is another one than before; a method that asks must ask the same each time it is entered`,
        'input_drift',
      );
    if (!recorded.decision) throw new SuspendToolCall();
    return recorded.decision;
  }

  private async step<T>(key: string, work: () => T | Promise<T>, recovery?: StepRecovery): Promise<JsonOf<T>> {
    this.requireInside();
    if (!isIdentifier(key)) throw new TypeError('context.step takes a key of 1-128 characters of A-Z a-z 0-9 . _ : -');
    if (this.working.has(key)) throw new TypeError(`context.step: the step ${key} is at work already; give each a key`);
    const policy: RecoveryPolicy = recovery ?? this.call.recovery ?? 'manual';
    const known = this.call.steps.get(key);
    if (known?.status === 'completed') return structuredClone(known.output) as JsonOf<T>;
    if (known?.status === 'failed') throw Object.assign(new Error(known.error.message), { code: known.error.code });
    const strict = known ? stricterPolicy(known.recovery, policy) : policy;
    if (known && !isRepeatable(strict))
      throw this.block(`its step ${key} was interrupted, and may not be repeated (${strict})`);
    const done = this.begin(key, work, strict);
    this.working.set(key, done);
    try {
      return (await done) as JsonOf<T>;
    } finally {
      this.working.delete(key);
    }
  }

  private async begin(step: string, work: () => unknown, recovery: RecoveryPolicy): Promise<JsonValue> {
    // Like any effect: neither announced nor begun once the lease is gone.
    this.requireOwned();
    await this.attempt.record([{ type: 'tool.step_started', at: this.now(), key: this.call.key, step, recovery }]);
    this.requireOwned();
    let output: unknown;
    try {
      output = await work();
    } catch (thrown) {
      if (thrown instanceof SuspendToolCall) throw this.leftStep(step, recovery);
      await this.finishStep(step, { error: recordedError(thrown, 'TOOL_FAILED') });
      throw thrown;
    }
    const normalised = normaliseResult(output, { maxBytes: this.attempt.ports.options.maxPayloadBytes });
    if (normalised.ok) {
      await this.finishStep(step, { output: normalised.value });
      return normalised.value;
    }
    const problem = `its step ${step} returned what cannot be recorded (${normalised.problem} at ${normalised.path})`;
    if (recovery !== 'safe') throw this.block(problem, 'unserialisable_result');
    const error = recordedFailure('UNSERIALISABLE_RESULT', problem);
    await this.finishStep(step, { error });
    throw Object.assign(new Error(problem), { code: error.code });
  }

  /**
   * Left in its middle a step is neither done nor failed: it is repeated with the method, or a person decides what it
   * did before.
   */
  private leftStep(step: string, recovery: RecoveryPolicy): SuspendToolCall {
    if (isRepeatable(recovery)) return new SuspendToolCall();
    const problem = `somebody was asked in the middle of its step ${step}, which may not be repeated (${recovery}); ask before a step or between steps`;
    return this.block(problem);
  }

  private async finishStep(step: string, ended: { output: JsonValue } | { error: RecordedError }): Promise<void> {
    // The call timed out meanwhile: it has its end in the journal already.
    if (this.isClosed) throw new SuspendToolCall();
    await this.attempt.record([{ type: 'tool.step_completed', at: this.now(), key: this.call.key, step, ...ended }]);
  }

  private block(problem: string, reason?: EntryOf<'tool.uncertain'>['reason']): SuspendToolCall {
    this.problem = { problem: recordedText(problem), ...(reason && { reason }) };
    return new SuspendToolCall();
  }

  private requireInside(): void {
    if (this.isClosed) throw new Error('The tool call has ended: its context can no longer be used.');
    if (this.pending || this.problem) throw new SuspendToolCall();
    if (this.isTransactional)
      throw new TypeError('a transactional tool can neither ask nor make steps; use another recovery policy');
  }

  private requireOwned(): void {
    if (!this.attempt.canContinue()) throw new StoreUnavailableError('The lease was lost before the step could begin.');
  }
}

/**
 * A method that does not wait for what it asked must not end the process with an unhandled rejection: it is left all
 * the same.
 */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

function isRepeatable(policy: RecoveryPolicy): boolean {
  return policy === 'safe' || policy === 'idempotent';
}

function refusalOf(decision: Decision): string {
  const word = 'decision' in decision ? (decision.decision === 'deny' ? 'denied' : 'approved') : decision.action;
  const note = 'note' in decision && decision.note !== undefined ? `: ${decision.note}` : '';
  return `${word} by ${decision.by}${note}`;
}

/**
 * What a method gives to `context.requestApproval`, as the interaction it becomes.
 * @throws TypeError for anything wrong with it, which is the method's mistake
 */
function readApprovalRequest(
  request: ApprovalRequest,
  defaultExpiryMs: number | null,
): Omit<InteractionDraft, 'ordinal'> {
  const given = (typeof request === 'object' && request !== null ? request : {}) as Record<string, unknown>;
  const { reason, risk, approverRole, arguments: shown = {}, expiresInMs = defaultExpiryMs } = given;
  const problems: string[] = [];
  if (typeof reason !== 'string' || isBlankText(reason)) problems.push('reason must be text that is not blank');
  for (const [field, value] of Object.entries({ risk, approverRole }))
    if (value !== undefined && typeof value !== 'string') problems.push(`${field} must be text`);
  if (expiresInMs !== null && !(Number.isSafeInteger(expiresInMs) && (expiresInMs as number) > 0))
    problems.push('expiresInMs must be a whole number above 0, or null');
  const read = normaliseResult(shown, { maxBytes: MAX_SHOWN_BYTES });
  if (!read.ok) problems.push(`arguments have no JSON form: ${read.problem} at ${read.path}`);
  else if (typeof read.value !== 'object' || read.value === null || Array.isArray(read.value))
    problems.push('arguments must be an object');
  if (problems.length > 0 || !read.ok) throw new TypeError(`context.requestApproval: ${problems.join('; ')}`);
  return {
    kind: 'approval',
    arguments: read.value as JsonObject,
    questions: null,
    reason: reason as string,
    risk: (risk as string | undefined) ?? null,
    approverRole: (approverRole as string | undefined) ?? null,
    expiresInMs: expiresInMs as number | null,
  };
}
