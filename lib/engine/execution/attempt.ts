import type { AgentDefinition, ToolDefinition } from '../../contracts/agent-definition.js';
import type { EntryOf, JournalEntry } from '../../contracts/journal-entry.js';
import type { JsonValue } from '../../contracts/json.js';
import type { ToolTransaction } from '../../contracts/ports/run-store.port.js';
import type { RunStatus } from '../../contracts/run-status.js';
import type { RunRecord } from '../../contracts/run.js';
import { FencedError } from '../../errors/store.errors.js';
import type { EnginePorts } from '../engine-ports.js';
import { untilAnswered } from '../failure.js';
import type { CallInteraction } from '../interactions.js';
import { readRunState } from '../journal/read-whole-journal.js';
import { resultsOnly, RunJournal } from '../journal/run-journal.js';
import type { CallState, RunState } from '../journal/run-state.js';
import type { ActionFacts, NextAction } from '../next-action.js';
import type { RunWorker } from '../run-worker.js';
import { StopSwitch } from '../stop-switch.js';
import type { ExitPlan } from './exit-plan.js';
import { actionFacts } from './intents.js';

/** How an attempt ended in this process: lost, or in the status in which it left the run. */
type AttemptEnd = RunStatus | 'lost';

/** What an attempt starts from. */
export interface Claimed {
  run: RunRecord;
  agent: AgentDefinition;
  /** Folded up to and including the claim's entries. */
  state: RunState;
  /** The action whose intents were committed with the claim; null = decide now. */
  begun: NextAction | null;
  /** Messages wait in the inbox. */
  inboxWaiting: boolean;
}

/** In this order; an attempt never returns to an earlier one. */
const PHASES = [
  'acting',
  /** Begins nothing more, and hands the run over once nothing is in flight. */
  'parking',
  /**
   * As parking, after trouble with the store: the run comes back after a delay, because the next owner would meet the
   * same at once.
   */
  'backing_off',
  /** A step failed for good: the run is being handed to a person. */
  'failing',
  'over',
] as const;

/** One attempt of a run in this process: what it knows, and how far it may still go. */
export abstract class Attempt {
  /**
   * Resolves once, when this process has nothing more to do with the run; late results of zombies may follow as
   * evidence.
   */
  readonly ended: Promise<AttemptEnd>;
  readonly ports: EnginePorts;
  readonly run: RunRecord;
  readonly agent: AgentDefinition;
  readonly facts: ActionFacts;
  readonly journal: RunJournal;
  /** The journal as folded, including entries that are on their way to the store. */
  state: RunState;
  /** Operations that this process is executing, by key. */
  readonly inFlight = new Map<string, StopSwitch>();
  /** A message waits in the inbox: taken in at the next boundary. */
  inboxWaiting: boolean;
  /** An exit is being written; the run may still go on after it. */
  isLeaving = false;
  protected readonly begun: NextAction | null;
  protected phase: (typeof PHASES)[number] = 'acting';
  protected cancelDeadline: (() => void) | null = null;
  private resolveEnded!: (end: AttemptEnd) => void;

  constructor(
    protected readonly worker: RunWorker,
    { run, agent, state, begun, inboxWaiting }: Claimed,
    /** Of the lease that the run was claimed under. */
    private readonly term: number,
  ) {
    const { ports, publisher } = worker;
    this.ended = new Promise((resolve) => (this.resolveEnded = resolve));
    this.ports = ports;
    this.begun = begun;
    this.run = run;
    this.agent = agent;
    this.state = state;
    this.inboxWaiting = inboxWaiting;
    this.facts = actionFacts(agent, run, ports.options.maxOperations, this.inFlight);
    this.journal = new RunJournal(ports, { runId: run.id, attempt: run.attempt }, state.sequence, {
      onLanded: (first, entries) => publisher.committed(run, first, entries),
      canStartEffects: () => this.canStartEffects(),
      isOver: () => this.phase === 'over',
    });
  }

  /**
   * Takes one turn of the loop with these results, and the interaction a method asked for; failures are the attempt's
   * business.
   */
  abstract step(results: JournalEntry[], asked?: CallInteraction): void;
  /** As `step`; its commit ends the transaction, and its failures come back. */
  abstract tryStep(results: JournalEntry[], transaction?: ToolTransaction): Promise<void>;
  /** Leaves the run, unless a write by another process lets it go on. */
  abstract leave(plan: ExitPlan, results: JournalEntry[]): Promise<void>;
  /** @param results that could not be recorded */
  abstract fail(error: unknown, results?: readonly JournalEntry[]): void;

  /** Whether something new may begin: checked before every effect. */
  canStartEffects(): boolean {
    return this.phase === 'acting' && !this.isLeaving && this.worker.lease.isHeld(this.term);
  }

  /** Whether a call in flight may do more: during a shutdown too, while the lease lasts. */
  canContinue(): boolean {
    return this.phase !== 'over' && !this.isLeaving && this.worker.lease.isHeld();
  }

  /** How long this process has just stood still, in ms; 0 when it has not, or not for long. */
  get standstillMs(): number {
    return this.worker.lease.standstillMs;
  }

  /** Begins nothing more. */
  stopActing(): void {
    this.enter('parking');
  }

  /** Aborts everything in flight. What it still returns is recorded. */
  abortCalls(reason: string): void {
    for (const controller of this.inFlight.values()) controller.abort(new Error(reason));
  }

  /** The attempt no longer owns the run: it stops, and moves nothing. */
  lose(reason: string): void {
    if (this.phase === 'over') return;
    this.finish('lost');
    this.abortCalls(reason);
  }

  /** Marks an operation as being executed here. */
  hold(key: string): StopSwitch {
    const controller = new StopSwitch();
    this.inFlight.set(key, controller);
    return controller;
  }

  controllerOf(key: string): StopSwitch {
    return this.inFlight.get(key) as StopSwitch;
  }

  /** The call as folded now. */
  callOf(key: string): CallState {
    return this.state.calls.find((call) => call.key === key) as CallState;
  }

  toolOf({ name }: Pick<CallState, 'name'>): ToolDefinition | undefined {
    return this.agent.tools.find((tool) => tool.name === name);
  }

  apply(entries: readonly JournalEntry[]): void {
    for (const entry of entries) this.worker.fold.apply(this.state, this.withTool(entry));
  }

  /** Makes entries from the inside of an operation durable, before it goes on. @throws FencedError */
  async record(entries: JournalEntry[]): Promise<void> {
    if (this.phase === 'over' || this.isLeaving)
      throw new FencedError(`Run ${this.run.id} is no longer executed here.`);
    this.apply(entries);
    await this.journal.append(resultsOnly(entries, this.state.totals));
  }

  /**
   * Folds the journal anew: it is the truth when a folded step was refused, or its fate is unknown. Nothing is in
   * flight then.
   * @returns false when the run is gone
   */
  async refold(): Promise<boolean> {
    const history = this.state.messages.slice(0, this.state.historyLength);
    const read = () => readRunState(this.ports.store, this.worker.fold, this.run.id, history);
    const stored = await untilAnswered(this.ports, read, () => this.phase === 'over');
    if (!stored) {
      this.lose('the run no longer exists');
      return false;
    }
    this.state = stored.state;
    this.journal.caughtUp(stored.state.sequence);
    this.inFlight.clear();
    return true;
  }

  /**
   * Keeps what a call still brings home after its run was cancelled: as evidence in the journal, counted nowhere,
   * moving nothing. A run that was taken over or settled otherwise has another truth already; there the late result is
   * only logged.
   */
  async recordLateResults(results: readonly JournalEntry[]): Promise<void> {
    const { id: runId, attempt } = this.run;
    const late = results.flatMap((entry) => lateResult(entry, attempt) ?? []);
    if (late.length === 0) return;
    // A write whose answer was lost may be kept twice, which is better than not at all.
    const answer = await untilAnswered(this.ports, () =>
      this.ports.store.transition({
        runId,
        decide: ({ run }) =>
          run.status === 'cancelled' && run.attempt === attempt
            ? { result: true, run: { change: {}, entries: late } }
            : { result: false },
      }),
    );
    if (answer?.outcome === 'done' && answer.result)
      return this.worker.publisher.committed(answer.run, answer.run.sequence - late.length + 1, late);
    this.ports.log.warn('a late result was discarded: the run belongs to another attempt', {
      runId,
      attempt,
      operations: late.map(({ key }) => key),
    });
  }

  /** Logs a warning about a call. */
  warn(message: string, { key, name }: Pick<CallState, 'key' | 'name'>, fields: Record<string, unknown> = {}): void {
    this.ports.log.warn(message, { runId: this.run.id, operation: key, tool: name, ...fields });
  }

  protected enter(phase: (typeof PHASES)[number]): void {
    if (PHASES.indexOf(phase) > PHASES.indexOf(this.phase)) this.phase = phase;
  }

  protected finish(end: AttemptEnd): void {
    if (this.phase === 'over') return;
    this.phase = 'over';
    this.cancelDeadline?.();
    this.resolveEnded(end);
  }

  /**
   * Entries about a call name its tool, so that a reader of one entry need not look for the reply. They are not written
   * yet, and may be changed. A name that no tool has is the model's own text, and stays with its reply.
   */
  private withTool(entry: JournalEntry): JournalEntry {
    if (!('key' in entry) || !entry.type.startsWith('tool.')) return entry;
    const call = this.state.calls.find(({ key }) => key === entry.key);
    return call && call.toolVersion !== null ? Object.assign(entry, { tool: call.name }) : entry;
  }
}

function lateResult(entry: JournalEntry, attempt: number): EntryOf<'operation.late_result'> | null {
  if (entry.type !== 'model.completed' && entry.type !== 'tool.completed' && entry.type !== 'tool.failed') return null;
  const late: EntryOf<'operation.late_result'> = {
    type: 'operation.late_result',
    at: entry.at,
    key: entry.key,
    attempt,
  };
  if (entry.type === 'tool.failed') late.error = entry.error;
  else late.output = entry.type === 'tool.completed' ? entry.output : (entry.message.content as unknown as JsonValue);
  return late;
}
