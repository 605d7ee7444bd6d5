import type { InteractionDecision } from '../../contracts/interaction.js';
import type {
  InteractionDecided,
  JournalEntry,
  ModelAttemptFailed,
  ModelCompleted,
  ModelStarted,
  SequencedEntry,
  ToolStarted,
  ToolWaiting,
} from '../../contracts/journal-entry.js';
import type { JsonValue } from '../../contracts/json.js';
import type { Message, ToolOutcome } from '../../contracts/message.js';
import { addUsage, sumUsage, type Operation, type Usage } from '../../contracts/operation.js';
import type { Digester } from '../../contracts/ports/system.port.js';
import { effectsOf, mayHaveActed, pastGeneration, type CallState, type RunState } from './run-state.js';

/**
 * The fold: entry by entry from a journal to a {@link RunState}. Deterministic, so a restart sees exactly what the
 * first process saw. Kept here: I5 (the results of a reply become one message, in call order, when the last of them is
 * in) and I9 (usage is the sum of committed replies and of failed attempts that reported theirs).
 */
export class JournalFold {
  constructor(private readonly digester: Digester) {}

  /** Puts the history of the session in front. Called once, before any entry. */
  begin(state: RunState, history: readonly Message[]): void {
    for (const message of history) this.addMessage(state, message);
    state.historyLength = state.messages.length;
  }

  /** Folds stored entries, which must continue the state without a gap. */
  replay(state: RunState, entries: readonly SequencedEntry[]): void {
    for (const entry of entries) {
      this.apply(state, entry);
      if (entry.type === 'tool.started') this.compareArguments(state, entry);
    }
  }

  /**
   * A call would be repeated with what is stored now. Asked of stored entries only: one's own were digested a moment
   * ago.
   */
  private compareArguments(state: RunState, { key, digest }: ToolStarted): void {
    const { input } = this.callOf(state, key);
    if (digest !== this.digester.digest(this.digester.canonical(input))) state.drift ??= key;
  }

  /** Folds one entry: the next in sequence. */
  apply(state: RunState, entry: JournalEntry): void {
    state.sequence += 1;
    switch (entry.type) {
      case 'run.submitted':
        return this.addInput(state, entry.messages);
      case 'instructions.evaluated':
        state.instructions = entry.instructions;
        return;
      case 'history.effects':
        state.note = { ...entry.message, id: `${state.runId}/effects` };
        return this.rebuild(state, state.messages.slice(state.historyLength));
      case 'run.restarted':
        return this.beginGeneration(state, entry.generation, entry.messages);
      case 'run.steered':
        return this.addMessage(state, entry.message);
      case 'run.started':
      case 'run.resumed':
        state.generationStart.at ??= entry.at;
        return;
      case 'run.retried':
        // Its asks were withdrawn when it failed.
        if (state.ended) for (const call of state.calls) this.askAnew(state, call);
        state.ended = null;
        if (state.model) state.model.failures = 0;
        state.truncatedReplies = 0;
        return;
      case 'run.completed':
        state.ended = { status: 'completed', error: null, at: entry.at };
        return;
      case 'run.cancelled':
        state.ended = { status: 'cancelled', error: null, at: entry.at };
        return;
      case 'run.failed':
      case 'run.blocked':
      case 'run.timed_out':
        state.ended = { status: SETTLED_BY[entry.type], error: entry.error, at: entry.at };
        return;
      case 'budget.granted':
        state.grants.push({
          amount: entry.amount ?? 0,
          by: entry.by ?? 'unknown',
          ...(entry.note !== undefined && { note: entry.note }),
          at: entry.at,
        });
        return;
      case 'model.started':
        return this.modelStarted(state, entry);
      case 'model.attempt_failed':
        return this.modelFailed(state, entry);
      case 'model.completed':
        return this.modelCompleted(state, entry);
      case 'tool.started': {
        const call = this.callOf(state, entry.key);
        call.status = 'started';
        call.attempts = entry.attempt;
        call.openAttempts += 1;
        call.recovery = entry.recovery;
        call.interruptedBy = null;
        this.update(state, entry.key, {
          status: 'started',
          attempts: entry.attempt,
          recovery: entry.recovery,
          argumentsDigest: entry.digest,
          startedAt: state.operations.get(entry.key)?.startedAt ?? entry.at,
        });
        return;
      }
      case 'tool.released':
        this.callOf(state, entry.key).openAttempts -= 1;
        return this.reopen(state, entry.key);
      case 'interaction.requested':
        return this.requested(state, entry.key, entry.interactionId);
      case 'interaction.answered':
      case 'interaction.expired':
        return this.decided(state, entry);
      case 'tool.waiting':
        return this.methodAsked(state, entry);
      case 'tool.step_started':
        this.callOf(state, entry.key).steps.set(entry.step, {
          status: 'started',
          recovery: entry.recovery ?? 'manual',
        });
        return;
      case 'tool.step_completed':
        this.callOf(state, entry.key).steps.set(
          entry.step,
          entry.error
            ? { status: 'failed', error: entry.error }
            : { status: 'completed', output: entry.output ?? null },
        );
        return;
      case 'tool.completed':
        return this.finish(state, entry.key, 'success', entry.output, entry.at);
      case 'tool.failed':
        return this.finish(state, entry.key, entry.outcome, entry.error.message, entry.at);
      case 'tool.denied':
        return this.finish(
          state,
          entry.key,
          'denied',
          entry.reason === undefined ? `Denied by ${entry.by}.` : `Denied by ${entry.by}: ${entry.reason}`,
          entry.at,
        );
      case 'tool.uncertain': {
        if (entry.reportedToModel) return this.finish(state, entry.key, 'unknown', UNKNOWN_OUTCOME, entry.at);
        const call = this.callOf(state, entry.key);
        call.status = 'uncertain';
        call.interruptedBy = entry.interruptedBy;
        call.problem =
          entry.problem === undefined ? null : { detail: entry.problem, reason: entry.reason ?? 'uncertain_outcome' };
        this.update(state, entry.key, {
          status: 'uncertain',
          ...(entry.interruptedBy && { interruptedBy: entry.interruptedBy }),
        });
        return;
      }
      case 'tool.resolved':
        if ('output' in entry.resolution)
          return this.finish(state, entry.key, 'success', entry.resolution.output, entry.at);
        if ('error' in entry.resolution)
          return this.finish(state, entry.key, 'error', entry.resolution.error.message, entry.at);
        return this.reopenUndone(state, entry.key);
      case 'tool.probed':
        if (entry.result === 'happened')
          return this.finish(state, entry.key, 'success', entry.output ?? null, entry.at);
        if (entry.result === 'did-not-happen') return this.reopenUndone(state, entry.key);
        return;
      default:
        // Facts about ownership and people change no checkpoint.
        return;
    }
  }

  private requested(state: RunState, key: string, interactionId: string): void {
    const call = this.callOf(state, key);
    // An ask of the method itself is told by `tool.waiting`, which comes with it.
    if (call.methodInteractions.some((ask) => ask.interactionId === interactionId)) return;
    call.status = 'waiting';
    call.interactionId = interactionId;
  }

  private methodAsked(state: RunState, entry: ToolWaiting): void {
    const call = this.callOf(state, entry.key);
    call.status = 'waiting';
    const { interactionId, kind, digest, ordinal } = entry;
    call.methodInteractions[ordinal] = { interactionId, kind, digest, decision: null };
    this.update(state, entry.key, { status: 'waiting' });
  }

  /** Somebody is still wanted: asked by the run before a gated call is begun, by a method when it is entered again. */
  private askAnew(state: RunState, call: CallState): void {
    if (call.status !== 'waiting') return;
    call.withdrawn += 1;
    call.interactionId = null;
    if (call.methodInteractions.pop()) this.reopen(state, call.key);
  }

  /** What a person decided about a call, or told it. */
  private decided(state: RunState, { key, interactionId, decision, at }: InteractionDecided): void {
    const call = this.callOf(state, key);
    if ('decision' in decision && decision.decision === 'approve' && decision.arguments) {
      const { by, note, arguments: edited } = decision;
      call.edits.push({ by, ...(note !== undefined && { note }), arguments: edited });
    }
    const ask = call.methodInteractions.find((candidate) => candidate.interactionId === interactionId);
    if (ask) {
      ask.decision = decision;
      return this.reopen(state, key);
    }
    if ('decision' in decision) {
      if (decision.decision === 'deny') return this.finish(state, key, 'denied', refusalText(decision), at);
      if (decision.arguments) {
        call.input = decision.arguments;
        call.given = decision.givenArguments ?? decision.arguments;
      }
      return this.reopen(state, key);
    }
    if (decision.action === 'accept') return this.finish(state, key, 'success', decision.answers, at);
    this.finish(state, key, 'denied', refusalText(decision), at);
  }

  private addInput(state: RunState, messages: readonly Message[]): void {
    state.input = [...messages];
    messages.forEach((message, index) =>
      this.addMessage(state, { ...message, id: message.id ?? `${state.runId}/r${state.generation}.i${index}` }),
    );
  }

  private beginGeneration(state: RunState, part: number, messages: readonly Message[]): void {
    state.previousGenerations.push(pastGeneration(state));
    state.effects = effectsOf(state);
    state.generationStart = { at: null, totals: state.totals };
    state.ended = null;
    state.generation = part;
    state.modelOperations = 0;
    state.drift = null;
    state.instructions = null;
    state.model = null;
    state.calls = [];
    state.finishReason = null;
    state.failedText = null;
    state.truncatedReplies = 0;
    this.rebuild(state, []);
    this.addInput(state, messages);
  }

  /** The transcript anew: the history, the note about earlier runs, then what the run itself has. */
  private rebuild(state: RunState, own: readonly Message[]): void {
    const history = state.messages.slice(0, state.historyLength);
    state.messages = [];
    state.callIds.clear();
    state.digest = '';
    for (const message of [...history, ...(state.note ? [state.note] : []), ...own]) this.addMessage(state, message);
  }

  private modelStarted(state: RunState, entry: ModelStarted): void {
    if (state.model?.key !== entry.key) {
      const { turn, results, usage } = state.totals;
      state.totals = { turn: turn + 1, results, usage };
      state.modelOperations += 1;
      state.model = { key: entry.key, attempts: 0, failures: 0, status: 'started' };
      state.operations.set(entry.key, operation(entry.key, 'model', entry.model, entry.at));
    }
    state.model.attempts = entry.attempt;
    state.model.status = 'started';
    state.failedText = null;
    if (entry.digest !== state.digest) state.drift ??= entry.key;
    this.update(state, entry.key, {
      status: 'started',
      attempts: entry.attempt,
      argumentsDigest: entry.digest,
      finishedAt: null,
    });
  }

  private modelFailed(state: RunState, { key, at, usage, text }: ModelAttemptFailed): void {
    if (state.model) {
      state.model.failures += 1;
      state.model.status = 'failed';
    }
    state.failedText = text ?? null;
    if (usage) {
      const { unknownCalls } = state.totals.usage;
      state.totals = { ...state.totals, usage: { ...addUsage(state.totals.usage, usage), unknownCalls } };
    }
    this.update(state, key, { status: 'failed', finishedAt: at, ...(usage && this.usageWith(state, key, usage)) });
  }

  private modelCompleted(state: RunState, entry: ModelCompleted): void {
    state.model = null;
    state.finishReason = entry.finishReason;
    const { key, at, usage, message } = entry;
    const { turn, results, usage: used } = state.totals;
    // No object of this path begins with a spread: V8 builds those slowly.
    state.totals = { turn, results: results + 1, usage: addUsage(used, usage) };
    this.update(state, key, { status: 'completed', finishedAt: at, ...this.usageWith(state, key, usage) });
    this.addMessage(state, { role: 'assistant', content: message.content, id: `${state.runId}/${key}` });
    const parts = new Map(
      entry.message.content.flatMap((part) => (part.type === 'tool-call' ? [[part.callId, part] as const] : [])),
    );
    state.calls = entry.calls.map((verdict): CallState => {
      const waiting = verdict.approval !== undefined || verdict.questions !== undefined;
      const requested = operation(verdict.key, 'tool', verdict.name, null);
      requested.status = 'waiting';
      if (verdict.recovery) requested.recovery = verdict.recovery;
      state.operations.set(verdict.key, requested);
      const given = parts.get(verdict.callId)?.arguments ?? {};
      return {
        key: verdict.key,
        callId: verdict.callId,
        name: verdict.name,
        toolVersion: verdict.toolVersion,
        recovery: verdict.recovery,
        given,
        input: verdict.input ?? given,
        edits: [],
        approval: verdict.approval ?? null,
        questions: verdict.questions ?? null,
        interactionId: null,
        methodInteractions: [],
        withdrawn: 0,
        steps: new Map(),
        status: waiting ? 'waiting' : 'ready',
        attempts: 0,
        openAttempts: 0,
        interruptedBy: null,
        problem: null,
        outcome: null,
        output: null,
      };
    });
    state.truncatedReplies = entry.finishReason === 'length' && state.calls.length > 0 ? state.truncatedReplies + 1 : 0;
  }

  /** Failed attempts of the same operation have cost something too. */
  private usageWith(state: RunState, key: string, usage: Usage): Pick<Operation, 'usage'> {
    return { usage: sumUsage(state.operations.get(key)?.usage, usage) };
  }

  private reopen(state: RunState, key: string): void {
    const call = this.callOf(state, key);
    call.status = 'ready';
    call.interruptedBy = null;
    call.problem = null;
    this.update(state, key, { status: 'waiting' });
  }

  /** It did not happen, and so neither did the step in which it was cut; those before it did. */
  private reopenUndone(state: RunState, key: string): void {
    this.reopen(state, key);
    const call = this.callOf(state, key);
    const { steps } = call;
    call.openAttempts = 0;
    for (const [step, { status }] of steps) if (status === 'started') steps.delete(step);
  }

  private finish(state: RunState, key: string, outcome: ToolOutcome, output: JsonValue, at: number): void {
    const call = this.callOf(state, key);
    call.status = 'done';
    call.outcome = outcome;
    call.output = output;
    if (mayHaveActed(call)) state.effects.push({ name: call.name, input: call.input, outcome });
    const { turn, results, usage } = state.totals;
    state.totals = { turn, results: results + 1, usage };
    this.update(state, key, { status: OPERATION_STATUS[outcome], outcome, output, finishedAt: at });
    if (state.calls.some((other) => other.status !== 'done')) return;
    this.addMessage(state, {
      role: 'tool',
      id: `${state.runId}/${key.slice(0, key.lastIndexOf('.'))}/results`,
      content: state.calls.map((done) => ({
        type: 'tool-result',
        callId: done.callId,
        name: done.name,
        outcome: done.outcome as ToolOutcome,
        output: done.output,
        ...(done.edits.length > 0 && { edits: done.edits }),
      })),
    });
  }

  private addMessage(state: RunState, message: Message): void {
    state.messages.push(message);
    state.digest = this.digester.digest(`${state.digest}\n${this.digester.canonical(message)}`);
    if (message.role === 'assistant')
      for (const part of message.content) if (part.type === 'tool-call') state.callIds.add(part.callId);
  }

  private callOf(state: RunState, key: string): CallState {
    const call = state.calls.find((candidate) => candidate.key === key);
    if (!call)
      throw new Error(`the journal of run ${state.runId} names operation ${key}, which is no call of its latest reply`);
    return call;
  }

  private update(state: RunState, key: string, change: Partial<Operation>): void {
    const known = state.operations.get(key);
    if (known) Object.assign(known, change);
  }
}

function refusalText(decision: Exclude<InteractionDecision, { decision: 'approve' } | { action: 'accept' }>): string {
  const verb = 'decision' in decision ? 'Denied' : decision.action === 'decline' ? 'Declined' : 'Cancelled';
  return decision.note === undefined ? `${verb} by ${decision.by}.` : `${verb} by ${decision.by}: ${decision.note}`;
}

const SETTLED_BY = { 'run.failed': 'failed', 'run.blocked': 'blocked', 'run.timed_out': 'timed_out' } as const;

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

function operation(key: string, kind: Operation['kind'], name: string, startedAt: number | null): Operation {
  return { key, kind, name, status: 'started', attempts: 0, startedAt, finishedAt: null };
}
