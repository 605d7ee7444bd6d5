import type { Interaction } from '../../contracts/interaction.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type {
  LockedRun,
  RunWrites,
  ToolTransaction,
  TransitionDecision,
} from '../../contracts/ports/run-store.port.js';
import type { RunRecord, RunTotals } from '../../contracts/run.js';
import type { Attention } from '../../contracts/run-status.js';
import { failureOf, untilAnswered } from '../failure.js';
import { pendingInteractionsOf, buildInteraction, requestedEntry, type CallInteraction } from '../interactions.js';
import { resultsOnly, type StepEntries } from '../journal/run-journal.js';
import type { RunState } from '../journal/run-state.js';
import { keysOf, nextAction, type NextAction } from '../next-action.js';
import { decideExit, type ExitResult, type ExitTransition } from '../settle-run.js';
import { pendingInterruptOnce } from '../transitions.js';
import { recordedError, recordedText, thrownStack } from '../values/recorded-error.js';
import { Attempt } from './attempt.js';
import { uncertainCall } from './call-entries.js';
import { CallRunner } from './call-runner.js';
import {
  afterModelFailure,
  deliverPlan,
  exitFor,
  handOverPlan,
  STAY,
  timeOutPlan,
  troublePlan,
  type ExitContext,
  type ExitPlan,
} from './exit-plan.js';
import { intentsOf } from './intents.js';
import { ReplyRecorder, type ModelFailure } from './model-reply.js';
import { failedAttempt, requestModel } from './model-request.js';

/**
 * The loop of one attempt in this process: decide → commit → act → record, until the run settles, waits, backs off, is
 * handed over or is lost. Kept here: I1 (an intent is acted upon only after its commit), I2 (published after the
 * commit), I3 (a fenced attempt stops and moves nothing), I10 (store trouble never becomes a result). The order of
 * steps is the order of results: JavaScript runs one step at a time, the journal writes them in that order.
 */
export class RunExecution extends Attempt {
  private readonly replies = new ReplyRecorder(this);
  private readonly calls = new CallRunner(this);

  begin(): void {
    this.armDeadline();
    const { begun } = this;
    if (begun?.do !== 'call_model' && begun?.do !== 'start_calls') return this.step(this.calls.recover());
    this.reserve(begun);
    this.act(begun);
  }

  /** Begins nothing new; hands the run over when what is in flight has been committed. */
  park(): void {
    if (this.phase !== 'acting') return;
    this.stopActing();
    this.leaveIfIdle();
  }

  /** A caller wants the run to stop at its next boundary. */
  interrupt(): void {
    if (this.facts.interrupt) return;
    this.facts.interrupt = true;
    // A transactional call has the run to itself: its own commit is the next one.
    const isExclusive = this.state.calls.some((call) => this.inFlight.has(call.key) && this.facts.isExclusive(call));
    if (!isExclusive) void this.transact(STAY, []).catch((error: unknown) => this.fail(error));
  }

  // ---- deciding ----

  step(results: JournalEntry[], asked?: CallInteraction): void {
    void this.tryStep(results, undefined, asked).catch((error: unknown) => this.fail(error, results));
  }

  /** Results in, the next action's intents out, both in one commit. */
  async tryStep(results: JournalEntry[], transaction?: ToolTransaction, asked?: CallInteraction): Promise<void> {
    if (this.phase === 'over' || this.isLeaving) return this.recordLateResults(results);
    this.apply(results);
    const { totals, calls, finishReason } = this.state;
    const isActing = this.phase === 'acting';
    const action: NextAction = isActing ? nextAction(this.state, this.facts) : { do: 'await' };
    const begins = action.do === 'await' || action.do === 'call_model' || action.do === 'start_calls';
    const drafts = isActing ? pendingInteractionsOf(calls, this.ports.options.approvalExpiresMs) : [];
    if (asked) drafts.unshift(asked);
    // A turn that its model paused goes on first: nothing may stand between its halves.
    const delivers =
      action.do === 'call_model' && action.attempt === 1 && this.inboxWaiting && finishReason !== 'pause';
    if (begins && !delivers && drafts.length === 0) return this.commit(results, totals, action, transaction);
    // What follows needs a transaction of its own, with the run's row locked.
    if (transaction) {
      await this.journal.commitThrough(transaction, resultsOnly(results, totals));
      results = [];
    }
    // Both look into the inbox under the run's lock; what comes after that is noticed anew.
    if (delivers || action.do === 'complete') this.inboxWaiting = false;
    if (delivers) await this.leave(deliverPlan(this.run.id), results);
    else if (begins) await this.requestInteractions(drafts, results, action);
    else await this.leave(exitFor(action, this.exitContext(drafts)), results);
  }

  private exitContext(drafts: CallInteraction[]): ExitContext {
    const { run, state, ports } = this;
    const interactions = (now: number): Interaction[] =>
      drafts.map(({ draft, call }) => buildInteraction(draft, call, run, now, ports.digester));
    return { run, state, interactions };
  }

  /** Interactions are committed with the step that needs them, while the calls that need none go on. */
  private async requestInteractions(
    drafts: CallInteraction[],
    results: JournalEntry[],
    action: NextAction,
  ): Promise<void> {
    const { interactions } = this.exitContext(drafts);
    const intents = this.announce(action);
    const requested = (at: number): JournalEntry[] => interactions(at).map((asked) => requestedEntry(asked, at));
    this.apply(requested(this.ports.clock.now()));
    await this.transact({ ...STAY, entries: (at) => [...intents, ...requested(at)], interactions }, results);
    if (this.phase === 'over') return;
    this.act(action);
    this.leaveIfIdle();
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
    if (this.phase === 'over') return;
    if (landed === 'all') this.act(action);
    else {
      // The lease had run out, and the intents were not written: the fold is ahead of the journal, and the next owner
      // begins from there.
      this.unreserve(action);
      this.state.totals = totalsAfterResults;
      this.stopActing();
    }
    this.leaveIfIdle();
  }

  /** Writes and folds the intents of an action, and counts it as being executed from now on. */
  private announce(action: NextAction): JournalEntry[] {
    const intents = intentsOf(action, this.state, this.agent, this.ports);
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

  private act(action: NextAction): void {
    if (action.do !== 'call_model' && action.do !== 'start_calls') return;
    if (this.canStartEffects()) {
      if (action.do === 'call_model') void this.callModel(action.key);
      else for (const { key } of action.calls) void this.calls.run(key);
      return;
    }
    // The lease ran out, or a shutdown began, between the intent's commit and the act: never begun.
    this.unreserve(action);
    this.stopActing();
    const at = this.ports.clock.now();
    // A model intent needs no taking back: the request is sent again under the next number.
    this.step(action.do === 'start_calls' ? action.calls.map(({ key }) => ({ type: 'tool.released', at, key })) : []);
  }

  private async callModel(key: string): Promise<void> {
    try {
      const outcome = await requestModel(this, this.controllerOf(key));
      const entries = 'reply' in outcome ? await this.replies.record(key, outcome.reply) : [];
      this.inFlight.delete(key);
      if ('failure' in outcome && this.phase !== 'over' && !this.isLeaving) await this.modelFailed(outcome);
      else this.step(entries);
    } catch (error) {
      this.fail(error);
    }
  }

  private async modelFailed(failure: ModelFailure): Promise<void> {
    const model = this.state.model as NonNullable<RunState['model']>;
    const failed = failedAttempt(model, failure, this.ports.clock.now());
    this.apply([failed]);
    const after = afterModelFailure(this.run.frozen.modelRetry, model, failure);
    const context = this.exitContext([]);
    if ('error' in after) return this.leave(exitFor(after, context), [failed]);
    await this.leave(this.facts.interrupt ? exitFor({ do: 'interrupt' }, context) : after, [failed]);
  }

  // ---- leaving ----

  private leaveIfIdle(): void {
    const isParked = this.phase === 'parking' || this.phase === 'backing_off';
    if (!isParked || this.inFlight.size > 0 || this.isLeaving) return;
    const plan = this.phase === 'parking' ? handOverPlan(this.run) : troublePlan(this, null);
    void this.leave(plan, []).catch((error: unknown) => this.fail(error));
  }

  /** The absolute deadline or the end of the active time, whichever is first, by the store's clock. */
  private armDeadline(): void {
    const { deadlineAt, activeMs, frozen } = this.run;
    const { clock } = this.ports;
    const claimedAt = this.run.claimedAt ?? clock.now();
    const limitAt = Math.min(
      deadlineAt ?? Infinity,
      frozen.maxDurationMs === null ? Infinity : claimedAt + frozen.maxDurationMs - activeMs,
    );
    if (limitAt === Infinity) return;
    // Counted from the claim, which the store's clock dated, so that a skewed process clock does not matter.
    this.cancelDeadline = clock.after(Math.max(1, limitAt - claimedAt), () => void this.timeOut(limitAt));
  }

  private async timeOut(limitAt: number): Promise<void> {
    if (this.phase === 'over' || this.isLeaving) return;
    const at = this.ports.clock.now();
    // The effect of a call that the deadline cuts off stays on record as uncertain.
    const cut = this.state.calls
      .filter(({ key }) => this.inFlight.has(key))
      .map((call) => uncertainCall(call, at, 'timeout'));
    this.apply(cut);
    this.abortCalls('the run passed its deadline');
    await this.leave(timeOutPlan(limitAt), cut).catch((error: unknown) => this.fail(error));
  }

  async leave(plan: ExitPlan, results: JournalEntry[]): Promise<void> {
    this.isLeaving = true;
    const answer = await this.transact(plan, results).finally(() => (this.isLeaving = false));
    if (!answer || this.phase === 'over') return;
    if (answer.leavesMessages) this.inboxWaiting = true;
    this.apply(answer.news);
    this.step([]);
  }

  /**
   * A transaction of this attempt with the run's row locked, in turn with its appends. Null when the run is over here.
   */
  private transact(plan: ExitPlan, results: JournalEntry[]): Promise<ExitResult | null> {
    // As of now: what siblings bring home while this waits for its turn is counted by their own appends.
    const totals = this.journal.totalsInTurn(this.state.totals);
    return this.journal.alone(() => this.transactNow(plan, results, totals()));
  }

  /** Offered again until the store takes it, refuses it, or the attempt is over here (I10). */
  private async transactNow(plan: ExitPlan, results: JournalEntry[], totals: RunTotals): Promise<ExitResult | null> {
    const { store } = this.ports;
    const { id: runId, attempt, sessionId } = this.run;
    const exit: ExitTransition = {
      attempt,
      sequence: this.journal.sequence,
      results,
      totals,
      pendingInterruptEntries: pendingInterruptOnce(),
      maxCommitBytes: store.traits.maxCommitBytes,
      ...plan,
      isFirstTry: true,
    };
    let next: RunRecord | null = null;
    let writes: RunWrites = {};
    const decide = (locked: LockedRun): TransitionDecision<ExitResult> => {
      const decision = decideExit(locked, exit);
      next = locked.nextInSession;
      writes = decision;
      return decision;
    };
    const offer = async () => {
      const session = sessionId !== null && plan.verb !== null;
      const answer = await store.transition({ runId, session, decide }).catch((error: unknown) => {
        exit.isFirstTry = false;
        throw error;
      });
      return answer.outcome === 'done' && answer.result.outcome === 'too_early' ? undefined : answer;
    };
    const answer = await untilAnswered(this.ports, offer, () => this.phase === 'over');
    if (!answer) return null;
    if (answer.outcome !== 'done') {
      this.lose('the run no longer exists');
      return null;
    }
    if (next) this.worker.publisher.advanced(next, writes);
    return this.afterTransaction(plan, answer.result, answer.run);
  }

  private async afterTransaction(plan: ExitPlan, result: ExitResult, stored: RunRecord): Promise<ExitResult> {
    if (stored.status !== 'running') {
      this.finish(stored.status);
      this.journal.landed(result.entries);
      if (stored.nextAttemptAt !== null) this.worker.wakeAfter(stored.nextAttemptAt - stored.updatedAt);
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

  // ---- trouble ----

  fail(error: unknown, results: readonly JournalEntry[] = []): void {
    const { log } = this.ports;
    const fields = { runId: this.run.id, attempt: this.run.attempt, ...recordedError(error, 'STORE_BROKEN') };
    const failure = failureOf(error);
    switch (failure) {
      case 'fenced':
        log.warn('lost ownership of a run; its late results move nothing', fields);
        this.lose('the run was taken over, cancelled or settled');
        return void this.recordLateResults(results).catch(() => undefined);
      case 'unavailable':
        log.warn('the store did not take a step; the run is let go of', fields);
        this.enter('backing_off');
        return this.leaveIfIdle();
      case 'broken':
      case 'corrupt':
        log.error('the store broke a promise; the run keeps its status', fields);
        this.lose('the store broke a promise');
        return this.worker.break(error);
      default:
        log.error('a step failed in the engine itself', { ...fields, stack: thrownStack(error) });
        return this.giveUp(error, failure === 'too_large');
    }
  }

  /** @param isTooLarge nothing of the transaction was written: the run leaves in a smaller one */
  private giveUp(error: unknown, isTooLarge: boolean): void {
    if (this.phase === 'failing' || this.phase === 'over') return;
    const lose = (): void => this.lose('a step failed in the engine itself');
    if (this.isLeaving && !isTooLarge) return lose();
    this.enter('failing');
    const detail = `A step could not be taken: ${recordedError(error, 'TOOL_FAILED').message}. The journal up to sequence ${this.journal.sequence} is kept; retry the run once the cause is mended.`;
    const attention: Attention = { reason: isTooLarge ? 'limit' : 'journal_corrupt', detail: recordedText(detail) };
    void this.leave(exitFor({ do: 'call_attention', attention }, this.exitContext([])), []).catch(lose);
  }
}
