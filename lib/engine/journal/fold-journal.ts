import type { EntryOf, JournalEntry, SequencedEntry } from '../../contracts/journal-entry.js';
import type { Message } from '../../contracts/message.js';
import { addUsage, sumUsage, type Operation, type Usage } from '../../contracts/operation.js';
import type { Digester } from '../../contracts/ports/system.port.js';
import { askAgain, callOf, foldCall, newCall, resultsOf, update, type CallEntry } from './fold-calls.js';
import { effectsOf, pastGeneration, type RunState } from './run-state.js';

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
  private compareArguments(state: RunState, { key, digest }: EntryOf<'tool.started'>): void {
    const { input } = callOf(state, key);
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
        // Its interactions were withdrawn when it failed.
        if (state.ended) for (const call of state.calls) askAgain(state, call);
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
      case 'tool.started':
      case 'tool.released':
      case 'tool.waiting':
      case 'tool.step_started':
      case 'tool.step_completed':
      case 'tool.completed':
      case 'tool.failed':
      case 'tool.denied':
      case 'tool.uncertain':
      case 'tool.resolved':
      case 'tool.probed':
      case 'interaction.requested':
      case 'interaction.answered':
      case 'interaction.expired':
        return this.callChanged(state, entry);
      default:
        // Facts about ownership and people change no checkpoint.
        return;
    }
  }

  /** The last result of a reply brings the message with all of them. */
  private callChanged(state: RunState, entry: CallEntry): void {
    const { results } = state.totals;
    foldCall(state, entry);
    if (state.totals.results === results || state.calls.some(({ status }) => status !== 'done')) return;
    this.addMessage(state, resultsOf(state, entry.key.slice(0, entry.key.lastIndexOf('.'))));
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

  private modelStarted(state: RunState, entry: EntryOf<'model.started'>): void {
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
    update(state, entry.key, {
      status: 'started',
      attempts: entry.attempt,
      argumentsDigest: entry.digest,
      finishedAt: null,
    });
  }

  private modelFailed(state: RunState, { key, at, usage, text }: EntryOf<'model.attempt_failed'>): void {
    if (state.model) {
      state.model.failures += 1;
      state.model.status = 'failed';
    }
    state.failedText = text ?? null;
    if (usage) {
      const { unknownCalls } = state.totals.usage;
      state.totals = { ...state.totals, usage: { ...addUsage(state.totals.usage, usage), unknownCalls } };
    }
    update(state, key, { status: 'failed', finishedAt: at, ...(usage && this.usageWith(state, key, usage)) });
  }

  private modelCompleted(state: RunState, entry: EntryOf<'model.completed'>): void {
    state.model = null;
    state.finishReason = entry.finishReason;
    const { key, at, usage, message } = entry;
    const { turn, results, usage: used } = state.totals;
    // No object of this path begins with a spread: V8 builds those slowly.
    state.totals = { turn, results: results + 1, usage: addUsage(used, usage) };
    update(state, key, { status: 'completed', finishedAt: at, ...this.usageWith(state, key, usage) });
    this.addMessage(state, { role: 'assistant', content: message.content, id: `${state.runId}/${key}` });
    const parts = new Map(
      entry.message.content.flatMap((part) => (part.type === 'tool-call' ? [[part.callId, part] as const] : [])),
    );
    state.calls = entry.calls.map((verdict) => {
      state.operations.set(verdict.key, {
        ...operation(verdict.key, 'tool', verdict.name, null),
        status: 'waiting',
        ...(verdict.recovery && { recovery: verdict.recovery }),
      });
      return newCall(verdict, parts.get(verdict.callId)?.arguments ?? {});
    });
    state.truncatedReplies = entry.finishReason === 'length' && state.calls.length > 0 ? state.truncatedReplies + 1 : 0;
  }

  /** Failed attempts of the same operation have cost something too. */
  private usageWith(state: RunState, key: string, usage: Usage): Pick<Operation, 'usage'> {
    return { usage: sumUsage(state.operations.get(key)?.usage, usage) };
  }

  private addMessage(state: RunState, message: Message): void {
    state.messages.push(message);
    state.digest = this.digester.digest(`${state.digest}\n${this.digester.canonical(message)}`);
    if (message.role === 'assistant')
      for (const part of message.content) if (part.type === 'tool-call') state.callIds.add(part.callId);
  }
}

const SETTLED_BY = { 'run.failed': 'failed', 'run.blocked': 'blocked', 'run.timed_out': 'timed_out' } as const;

function operation(key: string, kind: Operation['kind'], name: string, startedAt: number | null): Operation {
  return { key, kind, name, status: 'started', attempts: 0, startedAt, finishedAt: null };
}
