/**
 * One attempt of one run in this process: decide → commit → act → record, until the run settles, waits, backs off, is handed over or is lost.
 * Kept here: I1 (an intent is acted upon only after its commit), I2 (told after the commit), I3 (a fenced attempt stops and moves nothing), I10 (store
 * trouble never becomes a result). The order of steps is the order of results: JavaScript runs one step at a time, the journal writes them in that order.
 */
import type { AgentDefinition } from '../../contracts/agent-definition.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { ToolTransaction } from '../../contracts/ports/run-store.port.js';
import type { RunRecord } from '../../contracts/run.js';
import { AgentRunsError } from '../../errors/agent-runs.error.js';
import type { EnginePorts } from '../engine-ports.js';
import type { JournalFold } from '../journal/fold-journal.js';
import { readRunState } from '../journal/read-whole-journal.js';
import { RunJournal, type StepEntries } from '../journal/run-journal.js';
import type { CallState, RunState } from '../journal/run-state.js';
import { nextAction, type ActionFacts, type NextAction } from '../next-action.js';
import { decideRecovery } from '../recovery-decision.js';
import { recordedError } from '../values/recorded-error.js';
import { Backoff } from './backoff.js';
import { RunDeadline } from './run-deadline.js';
import { actionFacts, IntentWriter } from './intents.js';
import { CallRunner, type AttemptHandle } from './call-runner.js';
import { backOffPlan, handOverPlan, leaveFor, timeOutPlan, type LeavePlan } from './leave-plan.js';
import { keepEvidence } from './late-result.js';
import { ReplyRecorder, requestModel, retryDelay, type ModelFailure } from './model-turn.js';
import { decideLeave } from '../settle-run.js';

/** How an attempt ended in this process. */
export type ExecutionEnd = 'settled' | 'suspended' | 'backing_off' | 'handed_over' | 'lost';

export interface ExecutionHooks {
  /** Entries became durable. */
  onCommitted(run: RunRecord, firstSequence: number, entries: readonly JournalEntry[]): void;
  /** Whether this process's lease still lasts (decision 15); synchronous, asked before every effect. */
  leaseHeld(): boolean;
  /** The store broke a promise: the worker must stop for good (STO-4). */
  onBroken(error: Error): void;
  /** A session's next run became claimable, or this one will be after a delay. */
  onClaimable(runId: string, afterMs: number): void;
}

/** What an attempt starts from. */
export interface Claimed {
  run: RunRecord;
  agent: AgentDefinition;
  /** Folded up to and including the claim's entries. */
  state: RunState;
  /** The action whose intents were committed with the claim; null = decide now. */
  begun: NextAction | null;
}

export class RunExecution {
  /** Resolves once, when this process has nothing more to do with the run; late results of zombies may follow as evidence. */
  readonly ended: Promise<ExecutionEnd>;
  private resolveEnded!: (end: ExecutionEnd) => void;

  private mode: 'acting' | 'parking' | 'over' = 'acting';
  private readonly inFlight = new Map<string, AbortController>();
  private state: RunState;
  private readonly run: RunRecord;
  private readonly agent: AgentDefinition;
  private readonly facts: ActionFacts;
  private readonly journal: RunJournal;
  private readonly intents: IntentWriter;
  private readonly replies: ReplyRecorder;
  private readonly deadline: RunDeadline;
  private readonly calls: CallRunner;
  private leaving = false;

  constructor(
    private readonly ports: EnginePorts,
    private readonly fold: JournalFold,
    private readonly claimed: Claimed,
    private readonly hooks: ExecutionHooks,
  ) {
    this.ended = new Promise((resolve) => (this.resolveEnded = resolve));
    ({ run: this.run, agent: this.agent, state: this.state } = claimed);
    this.facts = actionFacts(this.agent, this.run.frozen, ports.options.maxOperations, this.inFlight);
    this.journal = new RunJournal(ports, { runId: this.run.id, attempt: this.run.attempt }, this.state.sequence, {
      onLanded: (first, entries) => hooks.onCommitted(this.run, first, entries),
      mayAct: () => this.mayAct(),
    });
    this.intents = new IntentWriter(ports, this.agent);
    this.replies = new ReplyRecorder(ports, this.agent, this.run);
    this.deadline = new RunDeadline(ports.clock, this.run);
    this.calls = new CallRunner(ports, this.agent, this.run, this.handle());
  }

  get id(): string {
    return this.run.id;
  }

  get attempt(): number {
    return this.run.attempt;
  }

  get callsInFlight(): number {
    return this.inFlight.size;
  }

  begin(): void {
    this.deadline.arm(() => void this.timeOut());
    const { begun } = this.claimed;
    if (begun?.do === 'call_model' || begun?.do === 'start_calls') {
      this.reserve(begun);
      this.act(begun);
      return;
    }
    this.step(this.recover());
  }

  /** Begin nothing new; hand the run over when what is in flight has been committed (decision 16). */
  park(): void {
    if (this.mode !== 'acting') return;
    this.mode = 'parking';
    this.handOverIfIdle();
  }

  /** Tells everything in flight to stop. What it still returns is recorded. */
  abortCalls(reason: string): void {
    for (const controller of this.inFlight.values()) controller.abort(new Error(reason));
  }

  /** The attempt no longer owns the run: stop, move nothing. */
  lose(reason: string): void {
    if (this.mode === 'over') return;
    this.finish('lost');
    this.abortCalls(reason);
  }

  // ---- deciding ----

  /** What a claim finds begun and unfinished (JRN-5): each call by its policy, all of them independently. */
  private recover(): JournalEntry[] {
    const at = this.ports.clock.now();
    const entries: JournalEntry[] = [];
    for (const call of this.state.calls.filter(({ status }) => status === 'started')) {
      const tool = this.calls.toolOf(call);
      switch (
        decideRecovery({
          stored: call.recovery ?? 'manual',
          current: tool?.recovery ?? null,
          cut: 'crash',
          attempts: call.attempts,
        })
      ) {
        case 'repeat':
        case 'error':
          // Begun again by the next action, with an intent of its own: the journal goes on saying `started` until then.
          call.status = 'ready';
          break;
        case 'probe':
          if (tool) this.calls.probe(tool, call, 'crash');
          else entries.push({ type: 'tool.uncertain', at, key: call.key, cut: 'crash', told: false });
          break;
        case 'inform':
          entries.push({ type: 'tool.uncertain', at, key: call.key, cut: 'crash', told: true });
          break;
        case 'attention':
          entries.push({ type: 'tool.uncertain', at, key: call.key, cut: 'crash', told: false });
      }
    }
    return entries;
  }

  /** One turn of the loop: results in, the next action's intents out, both in one commit. */
  private step(results: JournalEntry[], transaction?: ToolTransaction): void {
    void this.tryStep(results, transaction).catch((error: unknown) => this.fail(error, results));
  }

  private async tryStep(results: JournalEntry[], transaction?: ToolTransaction): Promise<void> {
    if (this.mode === 'over' || this.leaving) return keepEvidence(this.ports, this.run, results);
    this.apply(results);
    const totalsAfterResults = this.state.totals;
    const action: NextAction = this.mode === 'parking' ? { do: 'await' } : nextAction(this.state, this.facts);
    if (action.do === 'await' || action.do === 'call_model' || action.do === 'start_calls') {
      const intents = action.do === 'await' ? [] : this.intents.write(action, this.state);
      this.apply(intents);
      if (action.do !== 'await') this.reserve(action);
      await this.commit(
        { results, intents, totalsAfterResults, totalsAfterIntents: this.state.totals },
        action,
        transaction,
      );
      return;
    }
    if (transaction) {
      await this.journal.commitThrough(transaction, {
        results,
        intents: [],
        totalsAfterResults,
        totalsAfterIntents: totalsAfterResults,
      });
      results = [];
    }
    await this.leave(leaveFor(action, this.run, this.ports), results);
  }

  private apply(entries: readonly JournalEntry[]): void {
    for (const entry of entries) this.fold.apply(this.state, entry);
  }

  private async commit(step: StepEntries, action: NextAction, transaction?: ToolTransaction): Promise<void> {
    let landed: 'all' | 'results' = 'all';
    if (transaction) await this.journal.commitThrough(transaction, step);
    else if (step.results.length + step.intents.length > 0) landed = await this.journal.append(step);
    if (this.mode === 'over') return;
    if (landed === 'results') this.unreserve(action);
    else this.act(action);
    this.handOverIfIdle();
  }

  // ---- acting ----

  private reserve(action: NextAction): void {
    for (const key of keysOf(action)) this.hold(key);
  }

  private unreserve(action: NextAction): void {
    for (const key of keysOf(action)) this.inFlight.delete(key);
  }

  private act(action: NextAction): void {
    if (action.do === 'call_model') {
      // A model intent that nobody acts upon needs no taking back: the request is sent again under the next number.
      if (this.mayAct()) void this.callModel(action.key);
      else this.release(action);
    } else if (action.do === 'start_calls') {
      if (!this.mayAct()) return this.release(action);
      for (const { key } of action.calls) void this.calls.run(key);
    }
  }

  /** The lease ran out, or a shutdown began, between the intent's commit and the act: never begun (JRN-5a). */
  private release(action: NextAction): void {
    this.unreserve(action);
    this.mode = 'parking';
    const at = this.ports.clock.now();
    this.step(action.do === 'start_calls' ? action.calls.map(({ key }) => ({ type: 'tool.released', at, key })) : []);
  }

  private async callModel(key: string): Promise<void> {
    try {
      const outcome = await requestModel(
        this.agent,
        this.state,
        this.ports.clock,
        this.inFlight.get(key) as AbortController,
      );
      const entries = 'reply' in outcome ? await this.replies.record(key, outcome.reply, this.state) : [];
      this.inFlight.delete(key);
      if ('failure' in outcome && this.mode !== 'over') await this.modelFailed(key, outcome);
      else this.step(entries);
    } catch (error) {
      this.fail(error, []);
    }
  }

  private async modelFailed(key: string, { failure, retryAfterMs }: ModelFailure): Promise<void> {
    const model = this.state.model as NonNullable<RunState['model']>;
    const failed: JournalEntry = {
      type: 'model.attempt_failed',
      at: this.ports.clock.now(),
      key,
      attempt: model.attempts,
      error: failure,
    };
    this.apply([failed]);
    const policy = this.run.frozen.modelRetry;
    const exhausted = model.failures >= policy.maxAttempts;
    if (failure.retryable === true && !exhausted)
      return this.leave(backOffPlan(key, retryDelay(policy, model.failures, retryAfterMs), retryAfterMs), [failed]);
    const error =
      failure.retryable === true
        ? {
            code: 'MODEL_RETRIES_EXHAUSTED',
            message: `The model call failed ${model.failures} times: ${failure.message}`,
          }
        : { code: failure.code, message: failure.message };
    await this.leave(leaveFor({ do: 'fail', error, output: null }, this.run, this.ports), [failed]);
  }

  // ---- leaving ----

  private handOverIfIdle(): void {
    if (this.mode !== 'parking' || this.inFlight.size > 0 || this.leaving) return;
    void this.leave(handOverPlan(this.run), []).catch((error: unknown) => this.fail(error, []));
  }

  private async timeOut(): Promise<void> {
    if (this.mode === 'over' || this.leaving) return;
    const at = this.ports.clock.now();
    const cut: JournalEntry[] = this.state.calls
      .filter(({ key }) => this.inFlight.has(key))
      .map(({ key }) => ({ type: 'tool.uncertain', at, key, cut: 'timeout', told: false }));
    this.apply(cut);
    this.abortCalls('the run passed its deadline');
    await this.leave(timeOutPlan(this.deadline.limitAt as number), cut).catch((error: unknown) => this.fail(error, []));
  }

  private async leave(plan: LeavePlan, results: JournalEntry[]): Promise<void> {
    this.leaving = true;
    await this.journal.idle();
    const backoff = new Backoff(this.ports);
    while (this.mode !== 'over') {
      try {
        const answer = await this.ports.store.transition({
          runId: this.run.id,
          session: this.run.sessionId !== null,
          decide: (locked) =>
            decideLeave(locked, {
              ...plan,
              attempt: this.run.attempt,
              sequence: this.journal.sequence,
              entries: (now) => [...results, ...plan.entries(now)],
              totals: this.state.totals,
            }),
        });
        if (answer.outcome !== 'done') return this.lose('the run no longer exists');
        if (answer.result.outcome !== 'too_early') {
          this.finish(plan.end);
          this.journal.landed(answer.result.entries);
          return this.hooks.onClaimable(this.run.id, plan.afterMs ?? 0);
        }
      } catch (error) {
        if (!AgentRunsError.is(error) || error.family !== 'store' || !error.retryable) throw error;
      }
      await backoff.wait();
    }
  }

  private finish(end: ExecutionEnd): void {
    if (this.mode === 'over') return;
    this.mode = 'over';
    this.deadline.disarm();
    this.resolveEnded(end);
  }

  // ---- trouble ----

  private fail(error: unknown, results: readonly JournalEntry[]): void {
    const fields = { runId: this.run.id, attempt: this.run.attempt, ...recordedError(error, 'STORE_BROKEN') };
    if (AgentRunsError.is(error, 'FENCED')) {
      this.ports.log.warn('lost ownership of a run; its late results move nothing', fields);
      this.lose('the run was taken over, cancelled or settled');
      void keepEvidence(this.ports, this.run, results).catch(() => undefined);
      return;
    }
    if (AgentRunsError.is(error) && error.family === 'store' && error.retryable) {
      this.ports.log.warn('the store did not take a step; the run is let go of', fields);
      if (this.mode === 'acting') this.mode = 'parking';
      return this.handOverIfIdle();
    }
    if (AgentRunsError.is(error) && error.family === 'store') {
      this.ports.log.error('the store broke a promise; the run keeps its status', fields);
      this.lose('the store broke a promise');
      return this.hooks.onBroken(error);
    }
    this.ports.log.error('a step failed in the engine itself; the run needs attention', fields);
    if (this.leaving) return this.lose('a step failed in the engine itself');
    const detail = `A step could not be taken: ${recordedError(error, 'TOOL_FAILED').message}. The journal up to sequence ${this.journal.sequence} is kept; retry the run once the cause is mended.`;
    void this.leave(
      leaveFor({ do: 'call_attention', attention: { reason: 'journal_corrupt', detail } }, this.run, this.ports),
      [],
    ).catch(() => this.lose('a step failed in the engine itself'));
  }

  private mayAct(): boolean {
    return this.mode === 'acting' && this.hooks.leaseHeld();
  }

  /** What the runner of calls may do to this attempt. */
  private handle(): AttemptHandle {
    return {
      callOf: (key) => this.state.calls.find((call) => call.key === key) as CallState,
      mayAct: () => this.mayAct(),
      isOver: () => this.mode === 'over',
      hold: (key) => this.hold(key),
      controllerOf: (key) => this.inFlight.get(key) as AbortController,
      release: (key) => void this.inFlight.delete(key),
      step: (results) => this.step(results),
      stepThrough: (results, transaction) => this.tryStep(results, transaction),
      stopActing: () => {
        if (this.mode === 'acting') this.mode = 'parking';
      },
      refold: () => this.refold(),
      backOffAfter: (released) => {
        this.apply([released]);
        return this.leave(backOffPlan((released as { key: string }).key, this.run.frozen.modelRetry.initialDelayMs), [
          released,
        ]);
      },
      fail: (error) => this.fail(error, []),
    };
  }

  private hold(key: string): AbortController {
    const controller = new AbortController();
    this.inFlight.set(key, controller);
    return controller;
  }

  /** The journal is the truth when a folded step was refused; nothing is in flight then. */
  private async refold(): Promise<boolean> {
    const history = this.state.messages.slice(0, this.state.historyLength);
    const stored = await readRunState(this.ports.store, this.fold, this.run.id, history);
    if (!stored) {
      this.lose('the run no longer exists');
      return false;
    }
    this.state = stored.state;
    this.inFlight.clear();
    return true;
  }
}

function keysOf(action: NextAction): string[] {
  if (action.do === 'call_model') return [action.key];
  return action.do === 'start_calls' ? action.calls.map(({ key }) => key) : [];
}
