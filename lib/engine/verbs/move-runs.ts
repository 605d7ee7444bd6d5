import type { EntryOf, JournalEntry } from '../../contracts/journal-entry.js';
import type { Message } from '../../contracts/message.js';
import type {
  BudgetDecision,
  CallerNote,
  RestartOptions,
  ResumeOptions,
  RetryOptions,
  StartOptions,
  SteerOptions,
  SteerReceipt,
  ToolResolution,
} from '../../contracts/run-requests.js';
import { phaseOf } from '../../contracts/run-status.js';
import type { Run } from '../../contracts/run-view.js';
import type { RunChange, RunRecord } from '../../contracts/run.js';
import type { JsonValue } from '../../contracts/json.js';
import { readRequest, requireId, requireOptions } from '../../contracts/schema.js';
import type { RunState } from '../journal/run-state.js';
import { requireFit } from '../requests/payload.js';
import { userMessage } from '../requests/prompt-messages.js';
import { readResolution } from '../requests/read-requests.js';
import { DENIAL, GRANT, NOTE, RESTART, RESTART_MESSAGES, RESUME, RETRY, STEER } from '../requests/request-schemas.js';
import { settlement } from '../settle-run.js';
import { firstProblems } from '../values/plain-text.js';
import { changeStatus, NOTHING, requireVerb } from '../transitions.js';
import { requireAccepted } from './caller-transition.js';
import { decideDenial, decideGrant } from './decide-budget.js';
import { decideResolution, decideResume, decideSteering, noteInterrupt } from './decide-move.js';
import { ReadRuns } from './read-runs.js';
import { decideRestart, decideRetry } from './run-again.js';

/**
 * The verbs by which a caller moves a run. Each is one locked transition decided by the table of
 * contracts/run-transitions; what happens next is a claim's business, here or in another process.
 */
export abstract class MoveRuns extends ReadRuns {
  /**
   * Final at once, wherever the run is being executed; a call in flight is aborted.
   * @throws IllegalTransitionError when it is settled otherwise, RunNotFoundError
   */
  async cancel(runId: string, note: CallerNote = {}): Promise<Run> {
    const told = readRequest(NOTE, note);
    const run = await this.parts.callers.move(runId, true, (locked) => {
      if (locked.run.status === 'cancelled') return NOTHING;
      return settlement(locked, 'cancel', [{ type: 'run.cancelled', at: locked.now, ...told }]);
    });
    if (run.status === 'cancelled') this.parts.worker.drop(run.id, 'the run was cancelled');
    return this.get(runId);
  }

  /**
   * Lets a suspended run go on. A run that moves by itself is left as it is.
   * @throws RunLeasedError when a live worker owns it and no takeover is confirmed
   * @throws OpenInteractionsError when decisions are missing
   * @throws VersionUnavailableError when no live worker has its agent
   * @throws IllegalTransitionError when it is settled or queued, RunNotFoundError
   */
  async resume(runId: string, options: ResumeOptions = {}): Promise<Run> {
    if ((options as ResumeOptions | null)?.wait !== true) {
      await this.resumeNow(runId, options);
      return this.get(runId);
    }
    return this.parts.waits.during(runId, async () => {
      await this.resumeNow(runId, options);
      return this.result(runId);
    });
  }

  private async resumeNow(runId: string, options: ResumeOptions): Promise<void> {
    const resume = readRequest(RESUME, options);
    const run = await this.parts.callers.load(runId);
    if (phaseOf(run.status) === 'suspended') await this.parts.callers.requireExecutable(run);
    await this.parts.callers.move(runId, false, (locked) => decideResume(locked, resume));
    this.parts.worker.wakeForTakeover();
  }

  /**
   * Tries a failed run, or one that needs attention, again: results are kept, and a request that failed or whose reply
   * ended badly is made again.
   * @throws IllegalTransitionError also where the run's turn limit is used up and no higher `maxTurns` is given
   * @throws VersionUnavailableError when no live worker has its agent
   * @throws InvalidRequestError, RunNotFoundError
   */
  async retry(runId: string, options: RetryOptions = {}): Promise<Run> {
    const again = readRequest(RETRY, options);
    const run = await this.parts.callers.load(runId);
    requireVerb(run, 'retry');
    await this.parts.callers.requireExecutable(run);
    await this.parts.callers.move(runId, true, (locked) => decideRetry(locked, again));
    this.parts.worker.wake();
    return this.get(runId);
  }

  /**
   * Settles a call of unknown outcome; the run goes on when none is left.
   * @throws OperationConflictError when the operation is not one that may be settled now
   * @throws InvalidAnswerError when the output does not fit the tool's schema
   * @throws IllegalTransitionError when the run needs no attention, PayloadTooLargeError, RunNotFoundError
   */
  async resolveTool(runId: string, resolution: ToolResolution): Promise<Run> {
    const id = requireId('runId', runId);
    const read = readResolution(resolution, this.parts.ports.options.maxPayloadBytes);
    const key = read.key.startsWith(`${id}/`) ? read.key.slice(id.length + 1) : read.key;
    await this.parts.callers.moveFolded(id, false, (locked, state) => {
      const problems = this.outputProblems(locked.run, state, key, read);
      return decideResolution(locked, state, { ...read, key }, problems);
    });
    this.parts.worker.wake();
    return this.get(runId);
  }

  /**
   * Stops a run at its next boundary, all work kept.
   * @throws IllegalTransitionError when it is settled, queued or suspended, RunNotFoundError
   */
  async interrupt(runId: string, note: CallerNote = {}): Promise<Run> {
    const told = readRequest(NOTE, note);
    const run = await this.parts.callers.move(runId, false, (locked) => {
      if (locked.run.status === 'interrupted') return NOTHING;
      requireVerb(locked.run, 'interrupt');
      if (locked.run.status === 'running') return noteInterrupt(locked, told);
      const entries: JournalEntry[] = [{ type: 'run.interrupted', at: locked.now, ...told }];
      const change: RunChange = { nextAttemptAt: null, interruptRequest: null };
      return { run: changeStatus(locked.run, 'interrupt', entries, change) };
    });
    if (run.status === 'running') this.parts.worker.interrupt(run.id);
    return this.get(runId);
  }

  /**
   * Starts a settled run over on the same record.
   * @throws IllegalTransitionError when it is not settled, or its session has gone on
   * @throws VersionUnavailableError when no live worker has its agent
   * @throws InputRefusedError when the guardrail refuses the prompt, PayloadTooLargeError, RunNotFoundError
   */
  async restart(runId: string, options: RestartOptions = {}): Promise<Run> {
    await this.restartWith(runId, options);
    return this.get(runId);
  }

  /** @internal @param given instead of a prompt, as `start` has read them */
  protected async restartWith(runId: string, options: RestartOptions, given?: StartOptions['messages']): Promise<void> {
    const { prompt, ...again } = readRequest(RESTART, options);
    const messages = given
      ? readRequest(RESTART_MESSAGES, { messages: given }).messages
      : prompt === undefined
        ? null
        : [userMessage(prompt)];
    requireFit('The prompt', messages, this.parts.ports.options.maxPayloadBytes);
    const run = await this.parts.callers.load(runId);
    requireVerb(run, 'restart');
    await this.parts.callers.requireExecutable(run);
    // What was refused once is not let in by the back door; what passed is not asked about again (STR-2).
    if (messages || run.status === 'blocked') {
      const said = messages ?? (await this.parts.callers.inputOf(runId));
      await requireAccepted(this.parts.ports, run, { kind: 'prompt', messages: said, actor: run.actor });
    }
    await this.parts.callers.moveFolded(runId, true, (locked, state) =>
      decideRestart(locked, messages ?? state.input, again),
    );
    this.parts.worker.wake();
  }

  /**
   * Sends a message into an open run, which takes it up at its next boundary.
   * @throws RequestConflictError when the request id was used for another message
   * @throws IllegalTransitionError when the run is settled
   * @throws InputRefusedError when the guardrail refuses it, PayloadTooLargeError, RunNotFoundError
   */
  async steer(runId: string, text: string, options: SteerOptions): Promise<SteerReceipt> {
    const id = requireId('runId', runId);
    requireOptions(options);
    const given = readRequest(STEER, { ...options, message: text });
    const { sender, requestId = this.parts.ports.ids.id() } = given;
    const message = { ...userMessage(given.message), kind: 'steering', sender } as Message;
    requireFit('The message', message, this.parts.ports.options.maxPayloadBytes);
    if (this.parts.ports.guardrail)
      await requireAccepted(this.parts.ports, await this.parts.callers.load(id), {
        kind: 'steering',
        messages: [message],
        actor: { id: sender },
      });
    await this.parts.callers.move(
      id,
      false,
      (locked) =>
        decideSteering(locked, { requestId, sender, message: message as unknown as JsonValue }, this.parts.ports),
      requestId,
    );
    this.parts.worker.noticeInbox(id);
    return { messageId: requestId, status: 'queued' };
  }

  /**
   * Adds tokens to the budget of a run that waits for them.
   * @param amount tokens to add; default what is missing
   * @throws IllegalTransitionError when it does not wait for budget, RunNotFoundError
   */
  async grantBudget(runId: string, amount: number | undefined, decision: BudgetDecision): Promise<Run> {
    requireOptions(decision);
    const { amount: added, ...told } = readRequest(GRANT, { ...decision, amount });
    await this.parts.callers.move(runId, false, (locked) => decideGrant(locked, added, told));
    this.parts.worker.wake();
    return this.get(runId);
  }

  /**
   * Fails a run that waits for budget (`BUDGET_DENIED`).
   * @throws IllegalTransitionError when it does not wait for budget, RunNotFoundError
   */
  async denyBudget(runId: string, decision: BudgetDecision): Promise<Run> {
    const told = readRequest(DENIAL, decision);
    await this.parts.callers.move(runId, true, (locked) => decideDenial(locked, told));
    this.parts.worker.wake();
    return this.get(runId);
  }

  private outputProblems(
    run: RunRecord,
    state: RunState,
    key: string,
    { resolution }: Pick<EntryOf<'tool.resolved'>, 'resolution'>,
  ): string[] {
    if (!('output' in resolution)) return [];
    const call = state.calls.find((candidate) => candidate.key === key);
    const tool = this.parts.ports.catalog.find(run.agent, run.version)?.tools.find(({ name }) => name === call?.name);
    const problems = tool?.caller.checkOutput(resolution.output) ?? [];
    return problems.length > 0 ? firstProblems(problems) : [];
  }
}
