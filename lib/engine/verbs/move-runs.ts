import type { EntryOf, JournalEntry } from '../../contracts/journal-entry.js';
import type { LockedRun, RunWrites } from '../../contracts/ports/run-store.port.js';
import type {
  CallerNote,
  RestartOptions,
  ResumeOptions,
  RetryOptions,
  StartOptions,
  ToolResolution,
} from '../../contracts/run-requests.js';
import { phaseOf } from '../../contracts/run-status.js';
import type { RunChange, RunRecord, WakeNote } from '../../contracts/run.js';
import { type Given, readRequest, requireId } from '../../contracts/schema.js';
import {
  InvalidAnswerError,
  OpenInteractionsError,
  OperationConflictError,
  RunLeasedError,
} from '../../errors/request.errors.js';
import { activeTimeOfOwner, isExpired } from '../claim-run.js';
import type { EnginePorts } from '../engine-ports.js';
import type { RunState } from '../journal/run-state.js';
import { requireFit } from '../requests/payload.js';
import { userMessage } from '../requests/prompt-messages.js';
import { readResolution } from '../requests/read-requests.js';
import { NOTE, RESTART, RESTART_MESSAGES, RESUME, RETRY } from '../requests/request-schemas.js';
import type { RunWorker } from '../run-worker.js';
import { settlement } from '../settle-run.js';
import { firstProblems } from '../values/plain-text.js';
import { becomePending, changeStatus, NOTHING, requireVerb } from '../transitions.js';
import { requireAccepted, type CallerTransition } from './caller-transition.js';
import { decideRestart, decideRetry } from './run-again.js';
import { hasBudgetLeft, stillWaiting } from './waiting-runs.js';

/**
 * The verbs by which a caller moves a run: cancel, resume, retry, resolveTool. Each is one locked transition decided by
 * the table of contracts/run-transitions; what happens next is a claim's business, here or in another process.
 */
export class MoveRuns {
  constructor(
    private readonly ports: EnginePorts,
    private readonly worker: RunWorker,
    private readonly callers: CallerTransition,
  ) {}

  /** Any open run → `cancelled`; a cancelled one stays as it is. @throws RunNotFoundError, IllegalTransitionError */
  async cancel(runId: string, note: CallerNote = {}): Promise<void> {
    const told = readRequest(NOTE, note);
    const run = await this.callers.move(runId, true, (locked) => {
      if (locked.run.status === 'cancelled') return NOTHING;
      return settlement(locked, 'cancel', [{ type: 'run.cancelled', at: locked.now, ...told }]);
    });
    if (run.status === 'cancelled') this.worker.drop(run.id, 'the run was cancelled');
  }

  /**
   * A suspended run → `pending`. An active run without a live owner is left to its next claim; a live owner refuses
   * unless taken over.
   * @throws RunLeasedError, OpenInteractionsError, VersionUnavailableError, IllegalTransitionError
   */
  async resume(runId: string, options: ResumeOptions = {}): Promise<void> {
    const resume = readRequest(RESUME, options);
    const run = await this.callers.load(runId);
    if (phaseOf(run.status) === 'suspended') await this.callers.requireExecutable(run);
    await this.callers.move(runId, false, (locked) => decideResume(locked, resume));
    this.worker.wakeForTakeover();
  }

  /**
   * `failed` or `needs_attention` → `pending`; completed results are kept, and what was unfinished is tried again.
   * @throws IllegalTransitionError, VersionUnavailableError, InvalidRequestError
   */
  async retry(runId: string, options: RetryOptions = {}): Promise<void> {
    const again = readRequest(RETRY, options);
    const run = await this.callers.load(runId);
    requireVerb(run, 'retry');
    await this.callers.requireExecutable(run);
    await this.callers.move(runId, true, (locked) => decideRetry(locked, again));
    this.worker.wake();
  }

  /**
   * Settles one blocked call by what a person knows. @throws OperationConflictError, InvalidAnswerError,
   * IllegalTransitionError
   */
  async resolveTool(runId: string, resolution: ToolResolution): Promise<void> {
    const id = requireId('runId', runId);
    const read = readResolution(resolution, this.ports.options.maxPayloadBytes);
    const key = read.key.startsWith(`${id}/`) ? read.key.slice(id.length + 1) : read.key;
    await this.callers.moveFolded(id, false, (locked, state) => {
      const problems = this.outputProblems(locked.run, state, key, read);
      return decideResolution(locked, state, { ...read, key }, problems);
    });
    this.worker.wake();
  }

  /** A running run stops at its next boundary, an idle one at once. @throws IllegalTransitionError */
  async interrupt(runId: string, note: CallerNote = {}): Promise<void> {
    const told = readRequest(NOTE, note);
    const run = await this.callers.move(runId, false, (locked) => {
      if (locked.run.status === 'interrupted') return NOTHING;
      requireVerb(locked.run, 'interrupt');
      if (locked.run.status === 'running') return noteInterrupt(locked, told);
      const entries: JournalEntry[] = [{ type: 'run.interrupted', at: locked.now, ...told }];
      const change: RunChange = { nextAttemptAt: null, interruptRequest: null };
      return { run: changeStatus(locked.run, 'interrupt', entries, change) };
    });
    if (run.status === 'running') this.worker.interrupt(run.id);
  }

  /**
   * A settled run starts over on the same record.
   * @param given instead of a prompt, as `start` has read them
   * @throws IllegalTransitionError, VersionUnavailableError, InputRefusedError
   */
  async restart(runId: string, options: RestartOptions = {}, given?: StartOptions['messages']): Promise<void> {
    const { prompt, ...again } = readRequest(RESTART, options);
    const messages = given
      ? readRequest(RESTART_MESSAGES, { messages: given }).messages
      : prompt === undefined
        ? null
        : [userMessage(prompt)];
    requireFit('The prompt', messages, this.ports.options.maxPayloadBytes);
    const run = await this.callers.load(runId);
    requireVerb(run, 'restart');
    await this.callers.requireExecutable(run);
    // What was refused once is not let in by the back door; what passed is not asked about again (STR-2).
    if (messages || run.status === 'blocked') {
      const said = messages ?? (await this.callers.inputOf(runId));
      await requireAccepted(this.ports, run, { kind: 'prompt', messages: said, actor: run.actor });
    }
    await this.callers.moveFolded(runId, true, (locked, state) =>
      decideRestart(locked, messages ?? state.input, again),
    );
    this.worker.wake();
  }

  private outputProblems(
    run: RunRecord,
    state: RunState,
    key: string,
    { resolution }: Pick<EntryOf<'tool.resolved'>, 'resolution'>,
  ): string[] {
    if (!('output' in resolution)) return [];
    const call = state.calls.find((candidate) => candidate.key === key);
    const tool = this.ports.catalog.find(run.agent, run.version)?.tools.find(({ name }) => name === call?.name);
    const problems = tool?.caller.checkOutput(resolution.output) ?? [];
    return problems.length > 0 ? firstProblems(problems) : [];
  }
}

// ---- deciders ----

/** The owner takes it up; a second request changes nothing. */
function noteInterrupt({ run, now }: LockedRun, note: CallerNote): RunWrites {
  if (run.interruptRequest) return NOTHING;
  return { run: { change: { interruptRequest: { at: now, ...note, journaled: false } }, entries: [] } };
}

function decideResume(locked: LockedRun, given: Given<typeof RESUME.fields>): RunWrites {
  const { budget, allowRunningTakeover, confirmation, wait: _wait, ...note } = given;
  const maxTotalTokens = budget?.maxTotalTokens ?? null;
  const takeover = allowRunningTakeover ? confirmation : undefined;
  const { run, now, lease } = locked;
  const change: RunChange = {
    // Whoever says go takes an earlier stop back.
    interruptRequest: null,
    ...(maxTotalTokens !== null && { budgetMaxTotalTokens: maxTotalTokens }),
  };
  const replaced = maxTotalTokens === null ? [] : [limitReplaced(locked, maxTotalTokens, note)];
  if (run.status === 'running') {
    if (isExpired(locked)) return keepLimit(locked, maxTotalTokens, note);
    const leaseRemainingMs = (lease?.expiresAt ?? now) - now;
    if (!takeover) {
      const details = { owner: run.owner, expiresAt: new Date(lease?.expiresAt ?? now) };
      throw new RunLeasedError(
        `Run ${run.id} is owned by ${run.owner} for another ${leaseRemainingMs} ms. Wait, or, where takeover is allowed, take it with allowRunningTakeover and a confirmation that the owner is gone.`,
        { details },
      );
    }
    const entries: JournalEntry[] = [
      ...replaced,
      { type: 'run.takeover_requested', at: now, ...takeover, leaseRemainingMs },
    ];
    const wake: WakeNote = {
      cause: 'takeover',
      ...takeover,
      leaseRemainingMs,
      ...(run.owner !== null && { previousOwner: run.owner }),
    };
    const activeMs = run.activeMs + activeTimeOfOwner(locked);
    return { run: changeStatus(run, 'seize', entries, { ...change, wake, activeMs }) };
  }
  if (run.status === 'pending' || run.status === 'retry_wait') return keepLimit(locked, maxTotalTokens, note);
  requireVerb(run, 'resume');
  if (maxTotalTokens !== null && run.waitingFor.includes('budget')) return decideNewLimit(locked, maxTotalTokens, note);
  const open = locked.interactions.filter(({ status }) => status === 'pending');
  if (open.length > 0)
    throw new OpenInteractionsError(
      `Run ${run.id} waits for ${open.length} open decisions: ${open.map(({ id }) => id).join(', ')}.`,
      { details: { interactions: open.map(({ id }) => id) } },
    );
  if (run.waitingFor.includes('budget') && !hasBudgetLeft(run, run.budgetMaxTotalTokens)) return NOTHING;
  const entries: JournalEntry[] = [...replaced, { type: 'run.resume_requested', at: now, ...note }];
  return becomePending(locked, 'resume', { cause: 'resumed', ...note }, entries, change);
}

/**
 * An active run without an owner is left to its next claim, but a limit that comes with the request holds at once.
 */
function keepLimit(locked: LockedRun, maxTotalTokens: number | null, note: CallerNote): RunWrites {
  if (maxTotalTokens === null) return NOTHING;
  const change = { budgetMaxTotalTokens: maxTotalTokens };
  // An owner whose lease has run out may still be writing: the journal is not ours.
  const entries = locked.run.status === 'running' ? [] : [limitReplaced(locked, maxTotalTokens, note)];
  return { run: { change, entries } };
}

function limitReplaced({ run, now }: LockedRun, maxTotalTokens: number, { by }: CallerNote): JournalEntry {
  const consumed = run.totals.usage.totalTokens;
  return { type: 'budget.limit_replaced', at: now, maxTotalTokens, consumed, ...(by !== undefined && { by }) };
}

/**
 * The given limit replaces the stored one at once; without anything left the run keeps waiting.
 */
function decideNewLimit(locked: LockedRun, maxTotalTokens: number, note: CallerNote): RunWrites {
  const { run, now } = locked;
  const replaced = limitReplaced(locked, maxTotalTokens, note);
  const change = { budgetMaxTotalTokens: maxTotalTokens, interruptRequest: null };
  if (!hasBudgetLeft(run, maxTotalTokens)) return { run: { change, entries: [replaced] } };
  const resumed: JournalEntry[] = [replaced, { type: 'run.resume_requested', at: now, ...note }];
  return (
    stillWaiting(locked, 'budget', [replaced], change) ??
    becomePending(locked, 'resume', { cause: 'budget', ...note }, resumed, change)
  );
}

function decideResolution(
  locked: LockedRun,
  state: RunState,
  resolved: Omit<EntryOf<'tool.resolved'>, 'at'>,
  problems: readonly string[],
): RunWrites {
  const { run, now } = locked;
  requireVerb(run, 'resolve');
  const blocked = state.calls.filter(({ status }) => status === 'uncertain');
  if (!blocked.some(({ key }) => key === resolved.key)) {
    const keys = blocked.map(({ key }) => key);
    throw new OperationConflictError(
      `Operation ${resolved.key} of run ${run.id} is not one that waits to be resolved. Those are: ${keys.join(', ') || 'none'}.`,
      { details: { operations: keys } },
    );
  }
  if (problems.length > 0)
    throw new InvalidAnswerError(`The output does not fit the tool's output schema: ${problems.join('; ')}.`, {
      details: { problems },
    });
  const tool = blocked.find(({ key }) => key === resolved.key)?.name;
  const entry: JournalEntry = { ...resolved, at: now, ...(tool !== undefined && { tool }) };
  const left = blocked.filter(({ key }) => key !== resolved.key).map(({ key }) => key);
  const totals =
    'notHappened' in resolved.resolution ? {} : { totals: { ...run.totals, results: run.totals.results + 1 } };
  if (left.length === 0) {
    const resumed = becomePending(locked, 'resolve', { cause: 'resolved', by: resolved.by }, [entry]);
    return { run: { ...resumed.run, ...totals } };
  }
  const attention = run.attention && { ...run.attention, operationKey: left[0] as string, operations: left };
  return { run: { change: { attention }, entries: [entry], ...totals } };
}
