import type { RunStore, StoreMetrics } from '../contracts/ports/run-store.port.js';
import type { InteractionResponse, StartContext, StartOptions, WaitOptions } from '../contracts/run-requests.js';
import type { InteractionView, Run } from '../contracts/run-view.js';
import { isSettled } from '../contracts/run-status.js';
import type { RunRecord } from '../contracts/run.js';
import { requireId } from '../contracts/schema.js';
import { AgentRunsError } from '../errors/agent-runs.error.js';
import { presentInteraction, presentRun } from './run-presenter.js';
import { MoveRuns } from './verbs/move-runs.js';

/**
 * What a host injects to work with runs. A pause of a run is a value, never an error. Every verb throws
 * `InvalidRequestError` for what is ill-formed and `StoreUnavailableError` when the store did not answer (try again);
 * what else it throws stands at each. A request error (`family: 'request'`) changes nothing.
 */
export class RunService extends MoveRuns {
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
    const { run, created } = await this.parts.starting.start(options, context);
    if (created) return presentRun(run, null, []);
    if (options.runId === run.id && options.requestId !== run.requestId) await this.startAgain(run, options);
    return { ...(await this.get(run.id)), deduplicated: true };
  }

  /** What an existing `runId` means to its caller. */
  private async startAgain(run: RunRecord, { ifExists, prompt, messages }: StartOptions): Promise<void> {
    if (ifExists === 'restart') await this.restartWith(run.id, { ...(prompt !== undefined && { prompt }) }, messages);
    else if (ifExists === 'resume' && run.status !== 'queued' && !isSettled(run.status)) await this.resume(run.id);
  }

  /**
   * `start`, then `result`; as it was accepted where the store stops answering meanwhile. Not with a transaction:
   * nothing runs before that commits. While this process shuts down it does not wait: look at `phase`. Give a
   * `requestId`, so that a caller who never got the answer may ask again.
   * @throws what `start` throws, and TooManyPendingError when a tool that waits for runs would wait as one too many
   */
  startAndWait(options: StartOptions, wait?: WaitOptions): Promise<Run> {
    // Before the start, so that a run which starts it leaves it its slot.
    return this.parts.waits.during(null, () => this.startAndWaitNow(options, wait));
  }

  private async startAndWaitNow(options: StartOptions, wait?: WaitOptions): Promise<Run> {
    const started = await this.start(options);
    try {
      const run = await this.result(started.id, wait);
      return started.deduplicated ? { ...run, deduplicated: true } : run;
    } catch (error) {
      if (AgentRunsError.is(error, 'STORE_UNAVAILABLE')) return started;
      throw error;
    }
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
    return presentInteraction(await this.parts.answering.respond(runId, interactionId, response));
  }

  /** One interaction of a run, whatever its status. @throws InteractionNotFoundError, RunNotFoundError */
  async getInteraction(runId: string, interactionId: string): Promise<InteractionView> {
    const id = requireId('runId', runId);
    return presentInteraction(await this.parts.answering.find(id, requireId('interactionId', interactionId)));
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
