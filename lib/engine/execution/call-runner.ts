/**
 * Runs the tool calls of one attempt and turns each end into the next step: recorded, taken back, begun again, or probed.
 * `transactional` calls run alone, inside a transaction that ends with their journal entry.
 */
import type { AgentDefinition } from '../../contracts/agent-definition.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { ToolTransaction } from '../../contracts/ports/run-store.port.js';
import type { RunRecord } from '../../contracts/run.js';
import type { ToolDefinition } from '../../contracts/tool-definition.js';
import { AgentRunsError } from '../../errors/agent-runs.error.js';
import { endedWithin } from '../ended-within.js';
import type { EnginePorts } from '../engine-ports.js';
import {
  interactionDigest,
  deriveInteractionId,
  type InteractionDraft,
  type CallInteraction,
} from '../interactions.js';
import type { CallState } from '../journal/run-state.js';
import { recordedError, recordedFailure } from '../values/recorded-error.js';
import { thrownStack } from '../values/thrown-stack.js';
import { resolveApproval } from './resolve-approval.js';
import { probeCall } from './probe-call.js';
import { mayHaveBegun, recheckCall, unlessBegun } from './recheck-call.js';
import { executeCall, type CallEnd, type CallEnvironment } from './tool-call.js';

/** What a call may do to the attempt it belongs to. */
export interface AttemptHandle {
  /** The call as folded now. */
  callOf(key: string): CallState;
  mayAct(): boolean;
  /** How long this process has just stood still, in ms. */
  standstillMs(): number;
  /** Whether a call that is under way may go on. */
  mayGoOn(): boolean;
  /** Whether the attempt is over in this process: what still comes home is evidence. */
  isOver(): boolean;
  /** Marks an operation as being executed here. */
  hold(key: string): AbortController;
  controllerOf(key: string): AbortController;
  /** It is no longer being executed here. */
  release(key: string): void;
  /** Takes a step with these results, and an ask the method made; failures are the attempt's business. */
  step(results: JournalEntry[], asked?: CallInteraction): void;
  /** Makes entries durable that move nothing on: the inside of a method. */
  record(entries: JournalEntry[]): Promise<void>;
  /** Takes a step whose commit ends this transaction; failures come back. */
  stepThrough(results: JournalEntry[], transaction: ToolTransaction): Promise<void>;
  /** Begins nothing more. */
  stopActing(): void;
  /** Keys of the calls that are begun and have no result, as folded now. */
  begunCalls(): string[];
  /** Folds the journal anew after a refused commit; false = the run is gone. */
  refold(): Promise<boolean>;
  /** Lets go of the run for a while; the call was never begun as far as the journal knows. */
  backOffAfter(released: JournalEntry): Promise<void>;
  fail(error: unknown): void;
}

/** Tries of a transactional tool whose transaction the database refused. */
const MAX_TRANSACTION_TRIES = 3;

export class CallRunner {
  private readonly environment: CallEnvironment;

  constructor(
    private readonly ports: EnginePorts,
    private readonly agent: AgentDefinition,
    private readonly runRecord: RunRecord,
    private readonly attempt: AttemptHandle,
  ) {
    this.environment = {
      ports,
      run: runRecord,
      maxPayloadBytes: ports.options.maxPayloadBytes,
      mayAct: () => attempt.mayAct(),
      standstillMs: () => attempt.standstillMs(),
      inside: {
        now: () => ports.clock.now(),
        mayGoOn: () => attempt.mayGoOn(),
        maxPayloadBytes: ports.options.maxPayloadBytes,
        defaultExpiryMs: ports.options.approvalExpiresMs,
        digestOf: (ask, call) => interactionDigest(ask, call, runRecord, ports.digester),
        record: (entries) => attempt.record(entries),
      },
      warn: (message, fields) => ports.log.warn(message, fields),
    };
  }

  toolOf(call: CallState): ToolDefinition | undefined {
    return this.agent.tools.find(({ name }) => name === call.name);
  }

  async run(key: string, transactionTry = 1): Promise<void> {
    const call = this.attempt.callOf(key);
    const tool = this.toolOf(call);
    if (!tool) return this.finish(call, null, { end: 'result', entries: [this.unknownTool(call)] });
    try {
      const refusal = await recheckCall(this.ports, this.runRecord.id, tool, call, mayHaveBegun(call));
      if (refusal) return await this.finish(call, tool, { end: 'result', entries: [refusal] });
      if (tool.recovery === 'transactional') return await this.runTransactional(tool, call, transactionTry);
      const controller = this.attempt.controllerOf(key);
      const end = await executeCall(this.environment, tool, call, controller, { onEnter: async () => undefined });
      await this.finish(call, tool, end);
    } catch (error) {
      // Only the store or our own code throws here: the call has no result, so recovery decides later (I10).
      this.attempt.release(key);
      this.attempt.fail(error);
    }
  }

  /** Asks the tool's probe about a call whose fate is unknown. */
  probe(tool: ToolDefinition, call: CallState, interruptedBy: 'crash' | 'timeout'): void {
    const controller = this.attempt.hold(call.key);
    const probed = async (): Promise<JournalEntry[]> => {
      const refusal = await recheckCall(this.ports, this.runRecord.id, tool, call, true);
      return refusal ? [refusal] : probeCall(this.environment, tool, call, interruptedBy, controller);
    };
    void probed().then(
      (entries) => {
        this.attempt.release(call.key);
        this.attempt.step(entries);
      },
      (error: unknown) => {
        this.attempt.release(call.key);
        this.attempt.fail(error);
      },
    );
  }

  private async finish(call: CallState, tool: ToolDefinition | null, end: CallEnd): Promise<void> {
    if (end.end === 'probe') {
      // Decision 17: while the tool may still be at work, its probe could only see the half of it.
      await endedWithin(this.ports.clock, this.ports.options.leaseMs, end.zombie);
      if (this.attempt.mayAct()) return this.probe(tool as ToolDefinition, call, 'timeout');
      // Cancelled or let go of meanwhile: whoever owns the run next asks.
      this.attempt.release(call.key);
      return this.attempt.step([]);
    }
    if (end.end === 'asked') return this.finishAsked(call, end.ask, end.entry);
    this.attempt.release(call.key);
    if (end.end === 'result') return this.attempt.step(end.entries);
    if (end.end === 'released') {
      this.attempt.stopActing();
      return this.attempt.step([this.released(call.key)]);
    }
    if (end.end === 'cut') {
      this.attempt.stopActing();
      return this.attempt.step([]);
    }
    // Still `started` in the journal; the next action begins it once more under the same operation id.
    call.status = 'ready';
    this.attempt.step([]);
  }

  private async finishAsked(call: CallState, ask: InteractionDraft, entry: JournalEntry): Promise<void> {
    const interactionId = deriveInteractionId(ask, call, this.runRecord, this.ports.digester);
    const waiting = { ...entry, interactionId } as JournalEntry;
    // Still held here meanwhile: nothing else may come of the call.
    const decided = await resolveApproval(this.ports, this.agent, this.runRecord, ask, call);
    this.attempt.release(call.key);
    if (decided) this.attempt.step([waiting, ...decided]);
    else this.attempt.step([waiting], { draft: ask, call });
  }

  /** Nothing else of the run is in flight, and no lock of ours is held while the method runs. */
  private async runTransactional(tool: ToolDefinition, call: CallState, attempt: number): Promise<void> {
    const controller = this.attempt.controllerOf(call.key);
    const transaction = this.ports.store.openToolTransaction();
    let committing = false;
    try {
      const end = await executeCall(this.environment, tool, call, controller, {
        onEnter: async () => ({ manager: await transaction.begin() }),
        openWithinMs: this.ports.options.leaseMs / 3,
        limitMs: Math.min(tool.timeoutMs ?? Infinity, tool.transactionTimeoutMs),
        rethrow: (error) => transaction.isConflict(error),
        within: (body) => (transaction.enter ? transaction.enter(body) : body()),
      });
      const completed = end.end === 'result' && end.entries[0]?.type === 'tool.completed';
      if (completed && !controller.signal.aborted) {
        this.attempt.release(call.key);
        committing = true;
        return await this.attempt.stepThrough(end.entries, transaction);
      }
      // Thrown, timed out, refused, cut or without a JSON form: its rows go first, then the outcome is recorded.
      await transaction.rollback();
      await this.finish(call, tool, completed ? { end: 'released' } : end);
    } catch (error) {
      await transaction.rollback().catch(() => undefined);
      const isConflict = AgentRunsError.is(error, 'STORE_CONFLICT') || transaction.isConflict(error);
      const isStore = AgentRunsError.is(error) && error.family === 'store';
      // Fenced or a broken promise, or our own code before any commit: the attempt's business.
      if (!isConflict && (isStore ? !error.retryable : !committing)) throw error;
      await this.afterRefusedTransaction(call.key, error, isConflict || isStore, isConflict ? attempt : null);
    }
  }

  /** The step may have been folded before its commit was refused, and the answer to a commit may have been lost: the journal is the truth. */
  private async afterRefusedTransaction(
    key: string,
    error: unknown,
    byStore: boolean,
    conflicts: number | null,
  ): Promise<void> {
    if (!(await this.attempt.refold())) return;
    const begun = this.attempt.begunCalls();
    if (!begun.includes(key)) {
      if (!byStore) throw error;
      // It is committed. The calls whose intents came with it were not begun.
      return this.attempt.step(begun.map((other) => this.released(other)));
    }
    // Never the model's business (decision 12).
    if (conflicts !== null && conflicts < MAX_TRANSACTION_TRIES && this.attempt.mayAct()) {
      this.attempt.hold(key);
      return this.run(key, conflicts + 1);
    }
    if (byStore) return this.attempt.backOffAfter(this.released(key));
    // The database will never commit what the tool wrote, e.g. for a deferred constraint of the host's tables.
    this.environment.warn('the transaction of a tool could not be committed', {
      runId: this.runRecord.id,
      operation: key,
      tool: this.attempt.callOf(key).name,
      stack: thrownStack(error),
    });
    this.attempt.step([
      {
        type: 'tool.failed',
        at: this.ports.clock.now(),
        key,
        outcome: 'error',
        error: recordedError(error, 'TOOL_FAILED'),
      },
    ]);
  }

  private released(key: string): JournalEntry {
    return { type: 'tool.released', at: this.ports.clock.now(), key };
  }

  private unknownTool(call: CallState): JournalEntry {
    const error = recordedFailure('UNKNOWN_TOOL', `The tool ${call.name} is no longer registered.`);
    const at = this.ports.clock.now();
    return unlessBegun(call, { type: 'tool.failed', at, key: call.key, outcome: 'unknown_tool', error }, error.message);
  }
}
