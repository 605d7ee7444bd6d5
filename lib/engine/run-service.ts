import type { RunStore, StoreMetrics } from '../contracts/ports/run-store.port.js';
import type { Message } from '../contracts/message.js';
import type {
  BudgetDecision,
  CallerNote,
  EventOptions,
  InteractionResponse,
  ListOptions,
  PendingInteractionsOptions,
  RestartOptions,
  ResumeOptions,
  RetryOptions,
  SessionMessagesOptions,
  StartContext,
  StartOptions,
  SteerOptions,
  SteerReceipt,
  StreamOptions,
  ToolResolution,
  WaitOptions,
} from '../contracts/run-requests.js';
import type {
  AgentDescription,
  BudgetStatus,
  EventPage,
  LifecycleRunEvent,
  InteractionView,
  Run,
  RunEvent,
  RunSnapshot,
  RunSummaryView,
  StreamedEvent,
} from '../contracts/run-view.js';
import { isSettled } from '../contracts/run-status.js';
import type { RunRecord } from '../contracts/run.js';
import { requireId } from '../contracts/schema.js';
import { AgentRunsError } from '../errors/agent-runs.error.js';
import type { EnginePorts } from './engine-ports.js';
import { presentInteraction, presentRun } from './run-presenter.js';
import type { RunWaits } from './run-waits.js';
import type { AnswerInteraction } from './verbs/answer-interaction.js';
import type { MoveRuns } from './verbs/move-runs.js';
import type { ReadRuns } from './verbs/read-runs.js';
import type { RunBudget } from './verbs/run-budget.js';
import type { SteerRun } from './verbs/steer-run.js';
import type { StartRun } from './verbs/start-run.js';

/** What the verbs of {@link RunService} are done by. */
export interface RunVerbs {
  starting: StartRun;
  reading: ReadRuns;
  moving: MoveRuns;
  answering: AnswerInteraction;
  steering: SteerRun;
  budget: RunBudget;
}

/**
 * What a host injects to work with runs. A pause of a run is a value, never an error. Every verb throws
 * `InvalidRequestError` for what is ill-formed and `StoreUnavailableError` when the store did not answer (try again);
 * what else it throws stands at each. A request error (`family: 'request'`) changes nothing.
 */
export class RunService {
  /** @internal */
  constructor(
    private readonly ports: EnginePorts,
    private readonly verbs: RunVerbs,
    private readonly waits: RunWaits,
  ) {}

  /**
   * Commits a run and returns at once. With `transaction` the run joins the host's transaction and exists only if that
   * commits. The same `requestId` with the same input again returns the first run, marked `deduplicated`; to another
   * actor, or outside of its session, it is a conflict.
   * @throws AgentNotFoundError, InvalidRequestError, PayloadTooLargeError before anything is read
   * @throws ForbiddenError when the session belongs to another owner
   * @throws SessionBusyError when another run holds a serial session and `enqueue` is not given
   * @throws RequestConflictError when the `requestId` was used with other input
   * @throws RunExistsError when the `runId` is taken and `ifExists` does not allow it
   * @throws TooManyPendingError when `maxPendingRuns` wait already
   * @throws StoreUnavailableError when it is not known whether the run exists: repeat with the same `requestId`
   */
  async start(options: StartOptions, context?: StartContext): Promise<Run> {
    const { run, created } = await this.verbs.starting.start(options, context);
    if (created) return presentRun(run, null, []);
    if (options.runId === run.id && options.requestId !== run.requestId) await this.startAgain(run, options);
    return { ...(await this.verbs.reading.get(run.id)), deduplicated: true };
  }

  /** What an existing `runId` means to its caller. */
  private async startAgain(run: RunRecord, { ifExists, prompt, messages }: StartOptions): Promise<void> {
    if (ifExists === 'restart')
      await this.verbs.moving.restart(run.id, { ...(prompt !== undefined && { prompt }) }, messages);
    else if (ifExists === 'resume' && run.status !== 'queued' && !isSettled(run.status))
      await this.verbs.moving.resume(run.id);
  }

  /**
   * `start`, then `result`; as it was accepted where the store stops answering meanwhile. Not with a transaction:
   * nothing runs before that commits. While this process shuts down it does not wait: look at `phase`. Give a
   * `requestId`, so that a caller who never got the answer may ask again.
   * @throws what `start` throws, and TooManyPendingError when a tool that waits for runs would wait as one too many
   */
  startAndWait(options: StartOptions, wait?: WaitOptions): Promise<Run> {
    // Before the start, so that a run which starts it leaves it its slot.
    return this.waits.during(null, () => this.startAndWaitNow(options, wait));
  }

  private async startAndWaitNow(options: StartOptions, wait?: WaitOptions): Promise<Run> {
    const started = await this.start(options);
    try {
      const run = await this.verbs.reading.result(started.id, wait);
      return started.deduplicated ? { ...run, deduplicated: true } : run;
    } catch (error) {
      if (AgentRunsError.is(error, 'STORE_UNAVAILABLE')) return started;
      throw error;
    }
  }

  /** A run as it is now. @throws RunNotFoundError */
  get(runId: string): Promise<Run> {
    return this.verbs.reading.get(runId);
  }

  /** Newest first; never prompts or results. @throws InvalidCursorError for a cursor that this list did not give */
  list(options?: ListOptions): Promise<{ runs: RunSummaryView[]; nextCursor?: string }> {
    return this.verbs.reading.list(options);
  }

  /**
   * The run and its operations at one moment; `cursor` is where to read events on.
   * @throws RunNotFoundError, JournalCorruptError
   */
  snapshot(runId: string): Promise<RunSnapshot> {
    return this.verbs.reading.snapshot(runId);
  }

  /** The transcript of this run alone. @throws RunNotFoundError, JournalCorruptError */
  messages(runId: string): Promise<Message[]> {
    return this.verbs.reading.messages(runId);
  }

  /**
   * The history that the next run of a session would see; empty for an unknown session.
   * @throws ForbiddenError for a session of another owner
   */
  sessionMessages(sessionId: string, options?: SessionMessagesOptions): Promise<Message[]> {
    return this.verbs.reading.sessionMessages(sessionId, options);
  }

  /**
   * Resolves when the run is settled or suspended, when the wait ends, or when this process shuts down; then with the
   * state it has. Giving up touches nothing.
   * @throws RunNotFoundError, and TooManyPendingError when a tool that waits for runs would wait as one too many
   */
  result(runId: string, wait?: WaitOptions): Promise<Run> {
    return this.verbs.reading.result(runId, wait);
  }

  /**
   * A page of the journal after a sequence.
   * @throws InvalidCursorError for a cursor ahead of the run, RunNotFoundError, JournalCorruptError
   */
  events(runId: string, options?: EventOptions & { projection?: 'full' }): Promise<EventPage>;
  events(runId: string, options: EventOptions & { projection: 'lifecycle' }): Promise<EventPage<LifecycleRunEvent>>;
  events(runId: string, options?: EventOptions): Promise<EventPage<RunEvent | LifecycleRunEvent>>;
  events(runId: string, options?: EventOptions): Promise<EventPage<RunEvent | LifecycleRunEvent>> {
    return this.verbs.reading.events(runId, options);
  }

  /**
   * Events as they are committed, from `after` on. Ends once the run is settled and its last event was given; stays open
   * while the run waits. Events of other processes arrive within the option `streamPoll`. A slow reader is behind,
   * never buffered. Leaving the loop, or aborting the signal, changes nothing about the run.
   * @throws RunNotFoundError, InvalidCursorError for a cursor ahead of the run, StreamInterruptedError when this process
   * shuts down, StoreUnavailableError: read on after the last event
   */
  stream(runId: string, options?: StreamOptions & { projection?: 'full' }): AsyncIterable<StreamedEvent>;
  stream(
    runId: string,
    options: StreamOptions & { projection: 'lifecycle' },
  ): AsyncIterable<StreamedEvent<LifecycleRunEvent>>;
  stream(runId: string, options?: StreamOptions): AsyncIterable<StreamedEvent<RunEvent | LifecycleRunEvent>>;
  stream(runId: string, options?: StreamOptions): AsyncIterable<StreamedEvent<RunEvent | LifecycleRunEvent>> {
    return this.verbs.reading.stream(runId, options);
  }

  /**
   * Lets a suspended run go on. A run that moves by itself is left as it is.
   * @throws RunLeasedError when a live worker owns it and no takeover is confirmed
   * @throws OpenInteractionsError when decisions are missing
   * @throws VersionUnavailableError when no live worker has its agent
   * @throws IllegalTransitionError when it is settled or queued, RunNotFoundError
   */
  async resume(runId: string, options?: ResumeOptions): Promise<Run> {
    if (options?.wait !== true) {
      await this.verbs.moving.resume(runId, options);
      return this.verbs.reading.get(runId);
    }
    return this.waits.during(runId, async () => {
      await this.verbs.moving.resume(runId, options);
      return this.verbs.reading.result(runId);
    });
  }

  /**
   * Tries a failed run, or one that needs attention, again: results are kept, and a request that failed or whose reply
   * ended badly is made again.
   * @throws IllegalTransitionError also where the run's turn limit is used up and no higher `maxTurns` is given
   * @throws VersionUnavailableError when no live worker has its agent
   * @throws InvalidRequestError, RunNotFoundError
   */
  retry(runId: string, options?: RetryOptions): Promise<Run> {
    return this.after(runId, this.verbs.moving.retry(runId, options));
  }

  /**
   * Final at once, wherever the run is being executed; a call in flight is aborted.
   * @throws IllegalTransitionError when it is settled otherwise, RunNotFoundError
   */
  cancel(runId: string, note?: CallerNote): Promise<Run> {
    return this.after(runId, this.verbs.moving.cancel(runId, note));
  }

  /**
   * Settles a call of unknown outcome; the run goes on when none is left.
   * @throws OperationConflictError when the operation is not one that may be settled now
   * @throws InvalidAnswerError when the output does not fit the tool's schema
   * @throws IllegalTransitionError when the run needs no attention, PayloadTooLargeError, RunNotFoundError
   */
  resolveTool(runId: string, resolution: ToolResolution): Promise<Run> {
    return this.after(runId, this.verbs.moving.resolveTool(runId, resolution));
  }

  /**
   * Decides an interaction exactly once; the run continues by itself when it was the last open one. With `roles` its
   * `approverRole` must be among them; without, the caller is trusted to have looked.
   * @throws RunNotFoundError, InteractionNotFoundError, PayloadTooLargeError
   * @throws ForbiddenError when `roles` lack the `approverRole`
   * @throws AlreadyDecidedError for another decision than the one that stands; the same one again is no error
   * @throws InteractionExpiredError when it came too late
   * @throws InvalidAnswerError, InvalidArgumentsError when answers or edited arguments do not fit; it stays open
   * @throws VersionUnavailableError when arguments are edited and this process does not have the tool
   */
  async respond(runId: string, interactionId: string, response: InteractionResponse): Promise<InteractionView> {
    return presentInteraction(await this.verbs.answering.respond(runId, interactionId, response));
  }

  /** One interaction of a run, whatever its status. @throws InteractionNotFoundError, RunNotFoundError */
  async getInteraction(runId: string, interactionId: string): Promise<InteractionView> {
    const id = requireId('runId', runId);
    return presentInteraction(await this.verbs.answering.find(id, requireId('interactionId', interactionId)));
  }

  /**
   * Open interactions, from the store. Oldest first, those of one turn in call order.
   * @throws InvalidCursorError for a cursor that this list did not give
   */
  pendingInteractions(
    options?: PendingInteractionsOptions,
  ): Promise<{ interactions: InteractionView[]; nextCursor?: string }> {
    return this.verbs.reading.pendingInteractions(options);
  }

  /**
   * Sends a message into an open run, which takes it up at its next boundary.
   * @throws RequestConflictError when the request id was used for another message
   * @throws IllegalTransitionError when the run is settled
   * @throws InputRefusedError when the guardrail refuses it, PayloadTooLargeError, RunNotFoundError
   */
  steer(runId: string, message: string, options: SteerOptions): Promise<SteerReceipt> {
    return this.verbs.steering.steer(runId, message, options);
  }

  /**
   * Stops a run at its next boundary, all work kept.
   * @throws IllegalTransitionError when it is settled, queued or suspended, RunNotFoundError
   */
  interrupt(runId: string, note?: CallerNote): Promise<Run> {
    return this.after(runId, this.verbs.moving.interrupt(runId, note));
  }

  /**
   * Starts a settled run over on the same record.
   * @throws IllegalTransitionError when it is not settled, or its session has gone on
   * @throws VersionUnavailableError when no live worker has its agent
   * @throws InputRefusedError when the guardrail refuses the prompt, PayloadTooLargeError, RunNotFoundError
   */
  restart(runId: string, options?: RestartOptions): Promise<Run> {
    return this.after(runId, this.verbs.moving.restart(runId, options));
  }

  /**
   * Adds tokens to the budget of a run that waits for them.
   * @param amount tokens to add; default what is missing
   * @throws IllegalTransitionError when it does not wait for budget, RunNotFoundError
   */
  grantBudget(runId: string, amount: number | undefined, decision: BudgetDecision): Promise<Run> {
    return this.after(runId, this.verbs.budget.grant(runId, amount, decision));
  }

  /**
   * Fails a run that waits for budget (`BUDGET_DENIED`).
   * @throws IllegalTransitionError when it does not wait for budget, RunNotFoundError
   */
  denyBudget(runId: string, decision: BudgetDecision): Promise<Run> {
    return this.after(runId, this.verbs.budget.deny(runId, decision));
  }

  /** What the run may spend and has spent. @throws RunNotFoundError, JournalCorruptError */
  budgetStatus(runId: string): Promise<BudgetStatus> {
    return this.verbs.budget.status(runId);
  }

  private async after(runId: string, work: Promise<void>): Promise<Run> {
    await work;
    return this.verbs.reading.get(runId);
  }

  /** The agents registered in this process, versions in ascending order. */
  definitions(): AgentDescription[] {
    const byName = new Map<string, AgentDescription>();
    for (const agent of this.ports.catalog.all()) {
      const described = byName.get(agent.name) ?? { name: agent.name, versions: [] };
      byName.set(agent.name, described);
      const tools = agent.tools.map(({ name, version, recovery, approval }) => ({ name, version, recovery, approval }));
      described.versions.push({ version: agent.version, hash: agent.hash, tools });
    }
    return [...byName.values()];
  }
}

/** Figures for dashboards and alarms, from bounded queries; no ids, no content. */
export class RunMetrics {
  constructor(private readonly store: RunStore) {}

  /** @throws StoreUnavailableError */
  read(): Promise<StoreMetrics> {
    return this.store.metrics();
  }
}
