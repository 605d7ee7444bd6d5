/**
 * One attempt of one run in this process: decide → commit → act → record, until the run settles, waits, backs off, is handed over or is lost.
 * Kept here: I1 (an intent is acted upon only after its commit), I2 (told after the commit), I3 (a fenced attempt stops and moves nothing), I10 (store
 * trouble never becomes a result). The order of steps is the order of results: JavaScript runs one step at a time, the journal writes them in that order.
 */
import type { AgentDefinition } from '../../contracts/agent-definition.js';
import type { Interaction } from '../../contracts/interaction.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { ToolTransaction } from '../../contracts/ports/run-store.port.js';
import type { RunRecord, RunTotals } from '../../contracts/run.js';
import type { Attention } from '../../contracts/run-status.js';
import { AgentRunsError } from '../../errors/agent-runs.error.js';
import { FencedError } from '../../errors/store/fenced.error.js';
import type { EnginePorts } from '../engine-ports.js';
import { pendingInteractionsOf, buildInteraction, requestedEntry, type CallInteraction } from '../interactions.js';
import type { JournalFold } from '../journal/fold-journal.js';
import { readRunState } from '../journal/read-whole-journal.js';
import { resultsOnly, RunJournal, type StepEntries } from '../journal/run-journal.js';
import type { CallState, RunState } from '../journal/run-state.js';
import { keysOf, nextAction, type ActionFacts, type NextAction } from '../next-action.js';
import { recordedError, recordedText } from '../values/recorded-error.js';
import { thrownStack } from '../values/thrown-stack.js';
import type { Claimed, ExecutionEnd, ExecutionHooks } from './attempt.js';
import { nameTool } from './name-tool.js';
import { cutByDeadline, RunDeadline } from './run-deadline.js';
import { actionFacts, IntentWriter } from './intents.js';
import { CallRunner, type AttemptHandle } from './call-runner.js';
import {
  afterModelFailure,
  backOffPlan,
  deliverPlan,
  handOverPlan,
  exitFor,
  interruptNoticePlan,
  timeOutPlan,
  type ExitContext,
  type ExitPlan,
} from './exit-plan.js';
import { recordLateResults } from './late-result.js';
import { offerTransaction } from './offer-transaction.js';
import { recoverCalls } from './recover-calls.js';
import { failedAttempt, ReplyRecorder, requestModel, retryDelay } from './model-turn.js';
import type { ModelFailure } from './read-reply.js';
import { untilAnswered } from './until-answered.js';
import type { ExitResult } from '../settle-run.js';

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
  /** The store refused something that is not offered again. */
  private troubled = false;
  /** A step failed for good. */
  private isGivingUp = false;
  private inboxWaiting: boolean;

  constructor(
    private readonly ports: EnginePorts,
    private readonly fold: JournalFold,
    private readonly claimed: Claimed,
    private readonly hooks: ExecutionHooks,
  ) {
    this.ended = new Promise((resolve) => (this.resolveEnded = resolve));
    ({ run: this.run, agent: this.agent, state: this.state } = claimed);
    this.facts = actionFacts(this.agent, this.run, ports.options.maxOperations, this.inFlight);
    this.journal = new RunJournal(ports, { runId: this.run.id, attempt: this.run.attempt }, this.state.sequence, {
      onLanded: (first, entries) => hooks.onCommitted(this.run, first, entries),
      mayAct: () => this.mayAct(),
    });
    this.intents = new IntentWriter(ports, this.agent);
    this.replies = new ReplyRecorder(ports, this.agent, this.run);
    this.deadline = new RunDeadline(ports.clock, this.run);
    this.inboxWaiting = claimed.inboxWaiting;
    this.calls = new CallRunner(ports, this.agent, this.run, this.handle());
  }

  get id(): string {
    return this.run.id;
  }

  get attempt(): number {
    return this.run.attempt;
  }

  /** It is writing its way out of the run. */
  get isLeaving(): boolean {
    return this.leaving;
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

  /** Begin nothing new; hand the run over when what is in flight has been committed. */
  park(): void {
    if (this.mode !== 'acting') return;
    this.mode = 'parking';
    this.handOverIfIdle();
  }

  /** A caller wants the run to stop at its next boundary. */
  interrupt(): void {
    if (this.facts.interrupt) return;
    this.facts.interrupt = true;
    if (!this.isAlone()) void this.transact(interruptNoticePlan(), []).catch((error: unknown) => this.fail(error, []));
  }

  /** A message waits in the inbox: taken in at the next boundary. */
  noticeInbox(): void {
    this.inboxWaiting = true;
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

  /** What a claim finds begun and unfinished: each call by its policy, all of them independently. */
  private recover(): JournalEntry[] {
    const { entries, probes } = recoverCalls(this.state, (call) => this.calls.toolOf(call), this.ports.clock.now());
    for (const { tool, call } of probes) this.calls.probe(tool, call, 'crash');
    return entries;
  }

  /** One turn of the loop: results in, the next action's intents out, both in one commit. */
  private step(results: JournalEntry[], transaction?: ToolTransaction, asked?: CallInteraction): void {
    void this.tryStep(results, transaction, asked).catch((error: unknown) => this.fail(error, results));
  }

  private async tryStep(results: JournalEntry[], transaction?: ToolTransaction, ask?: CallInteraction): Promise<void> {
    if (this.mode === 'over' || this.leaving) return recordLateResults(this.ports, this.run, results, this.hooks);
    this.apply(results);
    const totals = this.state.totals;
    const action: NextAction = this.mode === 'parking' ? { do: 'await' } : nextAction(this.state, this.facts);
    const begins = action.do === 'await' || action.do === 'call_model' || action.do === 'start_calls';
    const asks = [
      ...(ask ? [ask] : []),
      ...(this.mode === 'acting' ? pendingInteractionsOf(this.state.calls, this.ports.options.approvalExpiresMs) : []),
    ];
    // A turn that its model paused goes on first: nothing may stand between its halves.
    const delivers =
      action.do === 'call_model' && action.attempt === 1 && this.inboxWaiting && this.state.finishReason !== 'pause';
    if (begins && !delivers && asks.length === 0) return this.commit(results, totals, action, transaction);
    // What follows needs a transaction of its own, with the run's row locked.
    if (transaction) {
      await this.journal.commitThrough(transaction, resultsOnly(results, totals));
      results = [];
    }
    // Both look into the inbox under the run's lock; what comes after that is noticed anew.
    if (delivers || action.do === 'complete') this.inboxWaiting = false;
    if (delivers) await this.leave(deliverPlan(this.run.id), results);
    else if (begins) await this.ask(asks, results, action);
    else await this.leave(exitFor(action, this.leaveContext(asks)), results);
  }

  private leaveContext(asks: CallInteraction[]): ExitContext {
    const { run, state, ports } = this;
    const build = (now: number): Interaction[] =>
      asks.map(({ draft, call }) => buildInteraction(draft, call, run, now, ports.digester));
    return { run: this.run, state, asks: build };
  }

  /** Asks are committed with the step that needs them, while the calls that need none go on. */
  private async ask(asks: CallInteraction[], results: JournalEntry[], action: NextAction): Promise<void> {
    const built = this.leaveContext(asks).asks;
    const intents = this.announce(action);
    const requested = (at: number): JournalEntry[] => built(at).map((asked) => requestedEntry(asked, at));
    this.apply(requested(this.ports.clock.now()));
    const plan: ExitPlan = {
      verb: null,
      end: 'suspended',
      entries: (at) => [...intents, ...requested(at)],
      change: () => ({}),
      interactions: built,
    };
    await this.transact(plan, results);
    if (this.mode === 'over') return;
    this.act(action);
    this.handOverIfIdle();
  }

  /** Entries from the inside of a method: durable before it goes on. */
  private async record(entries: JournalEntry[]): Promise<void> {
    if (this.mode === 'over' || this.leaving) throw new FencedError(`Run ${this.run.id} is no longer executed here.`);
    this.apply(entries);
    await this.journal.append(resultsOnly(entries, this.state.totals));
  }

  private apply(entries: readonly JournalEntry[]): void {
    for (const entry of entries) this.fold.apply(this.state, nameTool(entry, this.state));
  }

  /** The usual step: results and the next intents in one append. */
  private async commit(
    results: JournalEntry[],
    totalsAfterResults: RunTotals,
    action: NextAction,
    transaction?: ToolTransaction,
  ): Promise<void> {
    const intents = this.announce(action);
    const step: StepEntries = { results, intents, totalsAfterResults, totalsAfterIntents: this.state.totals };
    let landed: 'all' | 'results' = 'all';
    if (transaction) await this.journal.commitThrough(transaction, step);
    else if (results.length + intents.length > 0) landed = await this.journal.append(step);
    if (this.mode === 'over') return;
    if (landed === 'all') this.act(action);
    else this.dropIntents(action, totalsAfterResults);
    this.handOverIfIdle();
  }

  /** Writes and folds the intents of an action, and counts it as being executed from now on. */
  private announce(action: NextAction): JournalEntry[] {
    if (action.do !== 'call_model' && action.do !== 'start_calls') return [];
    const intents = this.intents.write(action, this.state);
    this.apply(intents);
    this.reserve(action);
    return intents;
  }

  // ---- acting ----

  private reserve(action: NextAction): void {
    for (const key of keysOf(action)) this.hold(key);
  }

  private unreserve(action: NextAction): void {
    for (const key of keysOf(action)) this.inFlight.delete(key);
  }

  /** They were not written, because the lease had run out: the fold is ahead of the journal, and the next owner begins from there. */
  private dropIntents(action: NextAction, totals: RunTotals): void {
    this.unreserve(action);
    this.state.totals = totals;
    this.stopActing();
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

  /** The lease ran out, or a shutdown began, between the intent's commit and the act: never begun. */
  private release(action: NextAction): void {
    this.unreserve(action);
    this.stopActing();
    const at = this.ports.clock.now();
    this.step(action.do === 'start_calls' ? action.calls.map(({ key }) => ({ type: 'tool.released', at, key })) : []);
  }

  private async callModel(key: string): Promise<void> {
    try {
      const outcome = await requestModel(
        this.agent,
        this.run,
        this.state,
        this.ports,
        this.inFlight.get(key) as AbortController,
        (entries) => this.record(entries),
      );
      const entries = 'reply' in outcome ? await this.replies.record(key, outcome.reply, this.state) : [];
      this.inFlight.delete(key);
      if ('failure' in outcome && this.mode !== 'over' && !this.leaving) await this.modelFailed(outcome);
      else this.step(entries);
    } catch (error) {
      this.fail(error, []);
    }
  }

  private async modelFailed(failure: ModelFailure): Promise<void> {
    const model = this.state.model as NonNullable<RunState['model']>;
    const failed = failedAttempt(model, failure, this.ports.clock.now());
    this.apply([failed]);
    const after = afterModelFailure(this.run.frozen.modelRetry, model, failure);
    const context = this.leaveContext([]);
    if ('error' in after) return this.leave(exitFor(after, context), [failed]);
    await this.leave(this.facts.interrupt ? exitFor({ do: 'interrupt' }, context) : after, [failed]);
  }

  // ---- leaving ----

  private handOverIfIdle(): void {
    if (this.mode !== 'parking' || this.inFlight.size > 0 || this.leaving) return;
    // After trouble with a pause: the next owner would meet the same at once.
    const plan = this.troubled ? backOffPlan(null, this.pauseMs()) : handOverPlan(this.run);
    void this.leave(plan, []).catch((error: unknown) => this.fail(error, []));
  }

  /** The longer, the more often what is under way was begun in vain. */
  private pauseMs(): number {
    const tries = this.state.calls.filter(({ status }) => status !== 'done').map(({ attempts }) => attempts);
    return retryDelay(this.run.frozen.modelRetry, Math.max(1, ...tries), undefined);
  }

  private async timeOut(): Promise<void> {
    if (this.mode === 'over' || this.leaving) return;
    const cut = cutByDeadline(this.state, this.inFlight, this.ports.clock.now());
    this.apply(cut);
    this.abortCalls('the run passed its deadline');
    await this.leave(timeOutPlan(this.deadline.limitAt as number), cut).catch((error: unknown) => this.fail(error, []));
  }

  /** Leaves the run, unless what somebody else wrote meanwhile lets it go on. */
  private async leave(plan: ExitPlan, results: JournalEntry[]): Promise<void> {
    this.leaving = true;
    const answer = await this.transact(plan, results).finally(() => (this.leaving = false));
    if (!answer || this.mode === 'over') return;
    if (answer.leavesMessages) this.inboxWaiting = true;
    this.apply(answer.news);
    this.step([]);
  }

  /** A transaction of this attempt with the run's row locked, in turn with its appends. Null when the run is over here. */
  private transact(plan: ExitPlan, results: JournalEntry[]): Promise<ExitResult | null> {
    // As of now: what siblings bring home while this waits for its turn is counted by their own appends.
    const { totals } = this.state;
    return this.journal.alone(() => this.transactNow(plan, results, totals));
  }

  private async transactNow(plan: ExitPlan, results: JournalEntry[], totals: RunTotals): Promise<ExitResult | null> {
    const answer = await offerTransaction(
      this.ports,
      { runId: this.run.id, session: this.run.sessionId !== null && plan.verb !== null },
      { ...plan, attempt: this.run.attempt, sequence: this.journal.sequence, results, totals },
      () => this.mode === 'over',
    );
    if (answer === 'gone') this.lose('the run no longer exists');
    if (answer === 'gone' || answer === 'over') return null;
    if (answer.advanced)
      this.hooks.onCommitted(answer.advanced.run, answer.advanced.firstSequence, answer.advanced.entries);
    return this.afterTransaction(plan, answer.result, answer.run);
  }

  private async afterTransaction(plan: ExitPlan, result: ExitResult, stored: RunRecord): Promise<ExitResult> {
    if (stored.status !== 'running') {
      this.finish(plan.end);
      this.journal.landed(result.entries);
      this.hooks.onClaimable(this.run.id, plan.afterMs ?? 0);
      return result;
    }
    this.facts.budget = stored.budgetMaxTotalTokens;
    this.facts.interrupt ||= stored.interruptRequest !== null;
    if (result.outcome === 'stayed' || !plan.unlessContinued) {
      this.journal.landed(result.entries);
      return result;
    }
    // An earlier try stayed, and its answer was lost: only the journal knows what it wrote.
    await this.refold();
    return { ...result, news: [] };
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
      return void recordLateResults(this.ports, this.run, results, this.hooks).catch(() => undefined);
    }
    if (AgentRunsError.is(error) && error.family === 'store' && error.retryable) {
      this.ports.log.warn('the store did not take a step; the run is let go of', fields);
      this.troubled = true;
      this.stopActing();
      return this.handOverIfIdle();
    }
    if (AgentRunsError.is(error) && error.family === 'store') {
      this.ports.log.error('the store broke a promise; the run keeps its status', fields);
      this.lose('the store broke a promise');
      return this.hooks.onBroken(error);
    }
    this.ports.log.error('a step failed in the engine itself', { ...fields, stack: thrownStack(error) });
    // Of a transaction that was too large nothing was written: the run leaves in a smaller one.
    const isTooLarge = AgentRunsError.is(error, 'PAYLOAD_TOO_LARGE');
    if (this.isGivingUp) return;
    this.isGivingUp = true;
    const giveUp = (): void => this.lose('a step failed in the engine itself');
    if (this.leaving && !isTooLarge) return giveUp();
    const detail = `A step could not be taken: ${recordedError(error, 'TOOL_FAILED').message}. The journal up to sequence ${this.journal.sequence} is kept; retry the run once the cause is mended.`;
    const attention: Attention = { reason: isTooLarge ? 'limit' : 'journal_corrupt', detail: recordedText(detail) };
    void this.leave(exitFor({ do: 'call_attention', attention }, this.leaveContext([])), []).catch(giveUp);
  }

  /** A `transactional` call has the run to itself: its own commit is the next one (decisions/004). */
  private isAlone(): boolean {
    return this.state.calls.some((call) => this.inFlight.has(call.key) && this.facts.isExclusive(call));
  }

  private mayAct(): boolean {
    return this.mode === 'acting' && !this.leaving && this.hooks.leaseHeld();
  }

  private stopActing(): void {
    if (this.mode === 'acting') this.mode = 'parking';
  }

  /** What the runner of calls may do to this attempt. */
  private handle(): AttemptHandle {
    return {
      callOf: (key) => this.state.calls.find((call) => call.key === key) as CallState,
      mayAct: () => this.mayAct(),
      standstillMs: () => this.hooks.standstillMs(),
      mayGoOn: () => this.mode !== 'over' && !this.leaving && this.hooks.leaseHeld(),
      isOver: () => this.mode === 'over',
      hold: (key) => this.hold(key),
      controllerOf: (key) => this.inFlight.get(key) as AbortController,
      release: (key) => void this.inFlight.delete(key),
      step: (results, asked) => this.step(results, undefined, asked),
      record: (entries) => this.record(entries),
      stepThrough: (results, transaction) => this.tryStep(results, transaction),
      stopActing: () => this.stopActing(),
      refold: () => this.refold(),
      begunCalls: () => this.state.calls.flatMap(({ status, key }) => (status === 'started' ? [key] : [])),
      backOffAfter: (released) => {
        if (this.leaving) return Promise.resolve();
        this.apply([released]);
        return this.leave(backOffPlan((released as { key: string }).key, this.pauseMs()), [released]);
      },
      fail: (error) => this.fail(error, []),
    };
  }

  private hold(key: string): AbortController {
    const controller = new AbortController();
    this.inFlight.set(key, controller);
    return controller;
  }

  /** The journal is the truth when a folded step was refused, or its fate is unknown; nothing is in flight then. */
  private async refold(): Promise<boolean> {
    const history = this.state.messages.slice(0, this.state.historyLength);
    const read = () => readRunState(this.ports.store, this.fold, this.run.id, history);
    const stored = await untilAnswered(this.ports, read, () => this.mode === 'over');
    if (!stored) {
      this.lose('the run no longer exists');
      return false;
    }
    this.state = stored.state;
    this.journal.caughtUp(stored.state.sequence);
    this.inFlight.clear();
    return true;
  }
}
