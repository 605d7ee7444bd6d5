/**
 * What a tool method can do in the middle of its work that outlives the process (PPL-8a): ask a person, and do things once. A method that asks is left by
 * a thrown signal and entered again later, from its beginning, under the same operation id; what it asked and did before is answered from the journal.
 */
import type { Question } from '../../contracts/interaction.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { JsonObject, JsonValue } from '../../contracts/json.js';
import { isIdentifier } from '../../contracts/identifier.js';
import type {
  ApprovalGiven,
  ApprovalRequest,
  StepRecovery,
  ToolContext,
} from '../../contracts/ports/tool-caller.port.js';
import { ApprovalDeniedError } from '../../errors/run/approval-denied.error.js';
import { QuestionNotAnsweredError } from '../../errors/run/question-not-answered.error.js';
import { StoreUnavailableError } from '../../errors/store/store-unavailable.error.js';
import type { Ask } from '../interactions.js';
import type { CallState } from '../journal/run-state.js';
import { normaliseResult } from '../values/normalise-result.js';
import { recordedError } from '../values/recorded-error.js';
import type { CallEnd } from './tool-call.js';

/** What the inside of a method needs of the attempt it runs in. */
export interface InsidePorts {
  now(): number;
  mayAct(): boolean;
  maxPayloadBytes: number;
  defaultExpiryMs: number | null;
  digestOf(ask: Ask, call: CallState): string;
  /** Makes entries durable before it resolves. @throws FencedError */
  record(entries: JournalEntry[]): Promise<void>;
}

/** Leaves the method. Swallowing it changes nothing: what the method does afterwards is not recorded. */
class MethodLeft extends Error {
  constructor() {
    super('the method asked somebody; it is entered again when the answer is there');
    this.name = 'MethodLeft';
  }
}

export class MethodInside {
  private asked = 0;
  private leaving: { ask: Ask; digest: string } | null = null;
  private problem: { detail: string; drift: boolean } | null = null;

  constructor(
    private readonly call: CallState,
    private readonly ports: InsidePorts,
  ) {}

  context(): Pick<ToolContext, 'ask' | 'requestApproval' | 'step'> {
    return {
      ask: (questions) => this.ask(questions),
      requestApproval: (request) => this.requestApproval(request),
      step: (key, work, options) => this.step(key, work, options?.recovery),
    };
  }

  /** How the call ends because of what the method asked or met; null when it simply ended. */
  end(at: number): CallEnd | null {
    const { key } = this.call;
    if (this.problem) {
      const { detail, drift } = this.problem;
      const reason = drift ? { reason: 'input_drift' as const } : {};
      return {
        end: 'result',
        entries: [{ type: 'tool.uncertain', at, key, cut: null, told: false, problem: detail, ...reason }],
      };
    }
    if (!this.leaving) return null;
    const { ask, digest } = this.leaving;
    // The interaction's id is derived when it is built; the entry that names it is completed there.
    return {
      end: 'asked',
      ask,
      entry: { type: 'tool.waiting', at, key, interactionId: '', ordinal: ask.ordinal - 1, digest },
    };
  }

  private async ask(questions: Question | readonly Question[]): Promise<JsonObject> {
    const list: readonly Question[] = 'text' in questions ? [questions] : questions;
    if (
      list.length === 0 ||
      new Set(list.map(({ id }) => id)).size !== list.length ||
      !list.every(({ id, text }) => isIdentifier(id) && text !== '')
    ) {
      throw new TypeError(
        'context.ask takes questions with distinct ids (1-128 characters of A-Z a-z 0-9 . _ : -) and texts',
      );
    }
    const decision = this.decisionOf({
      kind: 'question',
      arguments: null,
      questions: [...list],
      reason: null,
      risk: null,
      approverRole: null,
      expiresInMs: this.ports.defaultExpiryMs,
    });
    if ('action' in decision && decision.action === 'accept') return decision.answers;
    throw new QuestionNotAnsweredError(`The question was not answered: ${refusalOf(decision)}.`, {
      details: { by: decision.by },
    });
  }

  private async requestApproval(request: ApprovalRequest): Promise<ApprovalGiven> {
    const { reason, risk = null, approverRole = null, expiresInMs = this.ports.defaultExpiryMs } = request;
    const decision = this.decisionOf({
      kind: 'approval',
      arguments: request.arguments ?? {},
      questions: null,
      reason,
      risk,
      approverRole,
      expiresInMs,
    });
    if ('decision' in decision && decision.decision === 'approve') {
      const { by, note, arguments: edited } = decision;
      return { by, ...(note !== undefined && { note }), ...(edited && { arguments: edited }) };
    }
    throw new ApprovalDeniedError(`Not approved: ${refusalOf(decision)}.`, { details: { by: decision.by } });
  }

  /** The recorded decision under the next ordinal; leaves the method when there is none yet. */
  private decisionOf(asking: Omit<Ask, 'ordinal'>): NonNullable<CallState['asks'][number]['decision']> {
    if (this.leaving || this.problem) throw new MethodLeft();
    this.refuseInTransaction();
    const ask: Ask = { ...asking, ordinal: ++this.asked };
    const digest = this.ports.digestOf(ask, this.call);
    const recorded = this.call.asks[ask.ordinal - 1];
    if (!recorded) {
      this.leaving = { ask, digest };
      throw new MethodLeft();
    }
    if (recorded.digest !== digest) {
      this.problem = {
        drift: true,
        detail: `its ask number ${ask.ordinal} is another one than before; a method that asks must ask the same each time it is entered`,
      };
      throw new MethodLeft();
    }
    if (!recorded.decision) throw new MethodLeft();
    return recorded.decision;
  }

  private async step<T>(key: string, work: () => T | Promise<T>, recovery?: StepRecovery): Promise<T> {
    if (this.leaving || this.problem) throw new MethodLeft();
    this.refuseInTransaction();
    if (!isIdentifier(key)) throw new TypeError('context.step takes a key of 1-128 characters of A-Z a-z 0-9 . _ : -');
    const known = this.call.steps.get(key);
    if (known?.status === 'completed') return structuredClone(known.output) as T;
    if (known?.status === 'failed') throw Object.assign(new Error(known.error.message), { code: known.error.code });
    if (known && known.recovery !== 'safe' && known.recovery !== 'idempotent') {
      this.problem = {
        drift: false,
        detail: `its step ${key} was interrupted, and may not be repeated (${known.recovery})`,
      };
      throw new MethodLeft();
    }
    const identity = { key: this.call.key, step: key };
    await this.ports.record([
      {
        type: 'tool.step_started',
        at: this.ports.now(),
        ...identity,
        recovery: recovery ?? this.call.recovery ?? 'manual',
      },
    ]);
    // Like any effect: not begun once the lease is gone.
    if (!this.ports.mayAct()) throw new StoreUnavailableError('The lease was lost before the step could begin.');
    return (await this.runStep(identity, work)) as T;
  }

  /** JRN-5b: what is rolled back as a whole has no inside of its own, and holds a lock while it waits. */
  private refuseInTransaction(): void {
    if (this.call.recovery === 'transactional') {
      throw new TypeError('a transactional tool can neither ask nor make steps; use another recovery policy');
    }
  }

  private async runStep(identity: { key: string; step: string }, work: () => unknown): Promise<JsonValue> {
    let output: unknown;
    try {
      output = await work();
    } catch (thrown) {
      const error = recordedError(thrown, 'TOOL_FAILED');
      await this.ports.record([{ type: 'tool.step_completed', at: this.ports.now(), ...identity, error }]);
      throw thrown;
    }
    const normalised = normaliseResult(output, { maxBytes: this.ports.maxPayloadBytes });
    if (!normalised.ok) {
      this.problem = {
        drift: false,
        detail: `its step ${identity.step} returned what cannot be recorded (${normalised.problem} at ${normalised.path})`,
      };
      throw new MethodLeft();
    }
    await this.ports.record([
      { type: 'tool.step_completed', at: this.ports.now(), ...identity, output: normalised.value },
    ]);
    return normalised.value;
  }
}

function refusalOf(decision: NonNullable<CallState['asks'][number]['decision']>): string {
  const word = 'decision' in decision ? (decision.decision === 'deny' ? 'denied' : 'approved') : decision.action;
  const note = 'note' in decision && decision.note !== undefined ? `: ${decision.note}` : '';
  return `${word} by ${decision.by}${note}`;
}
