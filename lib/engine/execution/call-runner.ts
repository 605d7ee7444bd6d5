import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { OperationInterruption } from '../../contracts/operation.js';
import type { ToolDefinition } from '../../contracts/agent-definition.js';
import { AgentRunsError } from '../../errors/agent-runs.error.js';
import { failureOf, isOfStore } from '../failure.js';
import type { InteractionDraft } from '../interactions.js';
import type { CallState } from '../journal/run-state.js';
import { endedWithin } from '../timed-call.js';
import { recordedError, recordedFailure, thrownStack } from '../values/recorded-error.js';
import type { Attempt } from './attempt.js';
import { failedCall, mayHaveBegun, unlessBegun } from './call-entries.js';
import { troublePlan } from './exit-plan.js';
import { probeCall, recoverCalls } from './recover-calls.js';
import { resolveApproval } from './resolve-approval.js';
import { ToolExecution, type CallEnd } from './tool-call.js';
import { recheckCall } from './validate-call.js';

/** Tries of a transactional tool whose transaction the database refused. */
const MAX_TRANSACTION_TRIES = 3;

/**
 * Runs the tool calls of one attempt and turns each end into the next step: recorded, taken back, begun again, or
 * probed. `transactional` calls run alone, inside a transaction that ends with their journal entry.
 */
export class CallRunner {
  constructor(private readonly attempt: Attempt) {}

  /** Decides about the calls that a claim finds begun and unfinished, all of them independently. */
  recover(): JournalEntry[] {
    const { entries, probes } = recoverCalls(this.attempt);
    for (const { tool, call } of probes) this.probe(tool, call, 'crash');
    return entries;
  }

  async run(key: string, transactionTry = 1): Promise<void> {
    const { attempt } = this;
    const call = attempt.callOf(key);
    const tool = attempt.toolOf(call);
    try {
      const refusal = tool
        ? await recheckCall(attempt.ports, attempt.run.id, tool, call, mayHaveBegun(call))
        : this.unknownTool(call);
      if (refusal || !tool) return this.end(call, refusal ? [refusal] : []);
      if (tool.recovery === 'transactional') return await this.runTransactional(tool, call, transactionTry);
      await this.finish(call, tool, await new ToolExecution(attempt, tool, call, attempt.controllerOf(key)).run());
    } catch (error) {
      // Only the store or our own code throws here: the call has no result, so recovery decides later (I10).
      this.abandon(key, error);
    }
  }

  private abandon(key: string, error: unknown): void {
    this.attempt.inFlight.delete(key);
    this.attempt.fail(error);
  }

  /** The call is no longer executed here. */
  private end({ key }: CallState, results: JournalEntry[]): void {
    this.attempt.inFlight.delete(key);
    this.attempt.step(results);
  }

  /** Asks the tool's probe about a call whose outcome is unknown. */
  private probe(tool: ToolDefinition, call: CallState, interruptedBy: OperationInterruption): void {
    const { attempt } = this;
    const controller = attempt.hold(call.key);
    const probed = async (): Promise<JournalEntry[]> => {
      const refusal = await recheckCall(attempt.ports, attempt.run.id, tool, call, true);
      return refusal ? [refusal] : probeCall(attempt, tool, call, interruptedBy, controller);
    };
    void probed().then(
      (entries) => this.end(call, entries),
      (error: unknown) => this.abandon(call.key, error),
    );
  }

  private async finish(call: CallState, tool: ToolDefinition, end: CallEnd): Promise<void> {
    const { attempt } = this;
    switch (end.end) {
      case 'result':
        return this.end(call, [end.entry]);
      case 'released':
        attempt.stopActing();
        return this.end(call, [this.released(call.key)]);
      case 'aborted':
        attempt.stopActing();
        return this.end(call, []);
      case 'retry':
        // Still `started` in the journal; the next action begins it once more under the same operation id.
        call.status = 'ready';
        return this.end(call, []);
      case 'suspended':
        return this.suspend(call, end.ask, end.entry);
      case 'probe':
        // While the tool may still be at work, its probe could only see the half of it.
        await endedWithin(attempt.ports.clock, attempt.ports.options.leaseMs, end.zombie);
        if (attempt.canStartEffects()) return this.probe(tool, call, 'timeout');
        // Cancelled or let go of meanwhile: the next owner of the run asks. This attempt may not go on without the
        // answer, even when its lease is back.
        attempt.stopActing();
        return this.end(call, []);
    }
  }

  private async suspend(call: CallState, ask: InteractionDraft, waiting: JournalEntry): Promise<void> {
    // Held here meanwhile: nothing else may come of the call.
    const decided = await resolveApproval(this.attempt, ask, call);
    if (decided) return this.end(call, [waiting, ...decided]);
    this.attempt.inFlight.delete(call.key);
    this.attempt.step([waiting], { draft: ask, call });
  }

  /** Nothing else of the run is in flight, and no lock of ours is held while the method runs. */
  private async runTransactional(tool: ToolDefinition, call: CallState, transactionTry: number): Promise<void> {
    const { attempt } = this;
    const controller = attempt.controllerOf(call.key);
    const transaction = attempt.ports.store.openToolTransaction();
    const { totals } = attempt.state;
    const { sequence } = attempt.journal;
    let isCommitting = false;
    try {
      const end = await new ToolExecution(attempt, tool, call, controller, transaction).run();
      const isCompleted = end.end === 'result' && end.entry.type === 'tool.completed';
      if (isCompleted && !controller.isAborted) {
        attempt.inFlight.delete(call.key);
        isCommitting = true;
        return await attempt.tryStep([end.entry], transaction);
      }
      // Thrown, timed out, refused, aborted or without a JSON form: its rows go first, then the outcome is recorded.
      await transaction.rollback();
      await this.finish(call, tool, isCompleted ? { end: 'released' } : end);
    } catch (error) {
      // Folded and not written: what leaves the run before the journal has been read again must not count it.
      if (isCommitting && attempt.journal.sequence === sequence) attempt.state.totals = totals;
      await transaction.rollback().catch(() => undefined);
      const isConflict = AgentRunsError.is(error, 'STORE_CONFLICT') || transaction.isConflict(error);
      const failure = failureOf(error);
      const isByStore = isConflict || failure === 'unavailable';
      // Fenced or a broken promise, or our own code before any commit: the attempt's business.
      if (!isByStore && (isOfStore(failure) || !isCommitting)) throw error;
      await this.afterRefusedTransaction(call.key, error, isByStore, isConflict ? transactionTry : null);
    }
  }

  /**
   * The step was folded before its commit was refused: the journal is the truth.
   * @param conflicts how often the transaction met a conflict; null = it was refused otherwise
   */
  private async afterRefusedTransaction(
    key: string,
    error: unknown,
    isByStore: boolean,
    conflicts: number | null,
  ): Promise<void> {
    const { attempt } = this;
    if (!(await attempt.refold())) return;
    const call = attempt.state.calls.find((known) => known.key === key && known.status === 'started');
    if (!call) throw error;
    // Never the model's business.
    if (conflicts !== null && conflicts < MAX_TRANSACTION_TRIES && attempt.canStartEffects()) {
      attempt.hold(key);
      return this.run(key, conflicts + 1);
    }
    if (isByStore) {
      if (attempt.isLeaving) return;
      const released = this.released(key);
      attempt.apply([released]);
      return attempt.leave(troublePlan(attempt, key), [released]);
    }
    // The database will never commit what the tool wrote, e.g. for a deferred constraint of the host's tables.
    attempt.warn('the transaction of a tool could not be committed', call, { stack: thrownStack(error) });
    attempt.step([failedCall(call, attempt.ports.clock.now(), recordedError(error, 'TOOL_FAILED'))]);
  }

  private released(key: string): JournalEntry {
    return { type: 'tool.released', at: this.attempt.ports.clock.now(), key };
  }

  private unknownTool(call: CallState): JournalEntry {
    const error = recordedFailure('UNKNOWN_TOOL', `The tool ${call.name} is no longer registered.`);
    const refusal = failedCall(call, this.attempt.ports.clock.now(), error, 'unknown_tool');
    return unlessBegun(call, refusal, error.message);
  }
}
