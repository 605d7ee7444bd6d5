/**
 * The verbs by which a caller moves a run: cancel, resume, retry, resolveTool. Each is one locked transition decided by the table of
 * contracts/run-transitions (RUN-1); what happens next is a claim's business, here or in another process.
 */
import type { JournalEntry, ToolResolved } from '../../contracts/journal-entry.js';
import type { LockedRun, TransitionDecision } from '../../contracts/ports/run-store.port.js';
import { isOffered, offerText } from '../../contracts/agent-definition.js';
import type { CallerNote, ResumeOptions, ToolResolution } from '../../contracts/run-requests.js';
import type { ClaimCause, RunRecord, WakeNote } from '../../contracts/run.js';
import { transitionOf, type RunVerb } from '../../contracts/run-transitions.js';
import { CONTRACT_VERSION } from '../../contracts/run.js';
import { IllegalTransitionError } from '../../errors/request/illegal-transition.error.js';
import { InvalidAnswerError } from '../../errors/request/invalid-answer.error.js';
import { OpenInteractionsError } from '../../errors/request/open-interactions.error.js';
import { OperationConflictError } from '../../errors/request/operation-conflict.error.js';
import { RunLeasedError } from '../../errors/request/run-leased.error.js';
import { VersionUnavailableError } from '../../errors/request/version-unavailable.error.js';
import { isExpired } from '../claim-run.js';
import type { EnginePorts } from '../engine-ports.js';
import type { JournalFold } from '../journal/fold-journal.js';
import { readRunState } from '../journal/read-whole-journal.js';
import type { RunState } from '../journal/run-state.js';
import type { LifecyclePublisher } from '../lifecycle-publisher.js';
import type { RunWorker } from '../run-worker.js';
import { settlement } from '../settle-run.js';
import { normaliseResult } from '../values/normalise-result.js';
import { notFound } from './read-runs.js';
import { invalid, isRecord, readBudget, requireId, type FieldProblem } from './read-start-options.js';

/** What a transition appended; empty when the run was already where the caller wants it. */
type Moved = TransitionDecision<JournalEntry[]>;

/** Tries to decide on a journal that keeps moving under the reader. */
const MAX_READS = 5;

export class MoveRuns {
  constructor(
    private readonly ports: EnginePorts,
    private readonly fold: JournalFold,
    private readonly worker: RunWorker,
    private readonly publisher: LifecyclePublisher,
  ) {}

  /** Any open run → `cancelled`; a cancelled one stays as it is (RUN-2). @throws RunNotFoundError, IllegalTransitionError */
  async cancel(runId: string, note: CallerNote = {}): Promise<void> {
    const told = readNote(note);
    const run = await this.move(runId, true, (locked) => {
      if (locked.run.status === 'cancelled') return { result: [] };
      require(locked.run, 'cancel');
      const entries: JournalEntry[] = [{ type: 'run.cancelled', at: locked.now, ...told }];
      return { result: entries, ...settlement(locked, { status: 'cancelled' }, entries) };
    });
    if (run.status === 'cancelled') this.worker.drop(run.id, 'the run was cancelled');
  }

  /**
   * A suspended run → `pending`. An active run without a live owner is left to whoever claims it; a live owner refuses unless taken over (OWN-4).
   * @throws RunLeasedError, OpenInteractionsError, VersionUnavailableError, IllegalTransitionError
   */
  async resume(runId: string, options: ResumeOptions = {}): Promise<void> {
    const resume = readResume(options);
    const run = await this.loadOrThrow(runId);
    if (run.status !== 'running') await this.requireExecutable(run);
    await this.move(runId, false, (locked) => decideResume(locked, resume));
    this.worker.wakeForTakeover();
  }

  /** `failed` or `needs_attention` → `pending`; completed results are kept (JRN-11). @throws IllegalTransitionError, VersionUnavailableError */
  async retry(runId: string, note: CallerNote = {}): Promise<void> {
    const told = readNote(note);
    const run = await this.loadOrThrow(runId);
    require(run, 'retry');
    await this.requireExecutable(run);
    await this.move(runId, true, (locked) => decideRetry(locked, told));
    this.worker.wake();
  }

  /** JRN-10: settles one blocked call by what a person knows. @throws OperationConflictError, InvalidAnswerError, IllegalTransitionError */
  async resolveTool(runId: string, resolution: ToolResolution): Promise<void> {
    const id = requireId('runId', runId);
    const read = readResolution(resolution, this.ports.options.maxPayloadBytes);
    const key = read.key.startsWith(`${id}/`) ? read.key.slice(id.length + 1) : read.key;
    for (let tries = 1; ; tries++) {
      const stored = await readRunState(this.ports.store, this.fold, id);
      if (!stored) throw notFound(id);
      const problems = this.outputProblems(stored.run, stored.state, key, read.entry);
      let moved = false;
      await this.move(id, false, (locked) => {
        moved = locked.run.sequence === stored.run.sequence;
        if (moved) return decideResolution(locked, stored.state, { ...read.entry, key }, problems);
        if (tries === MAX_READS)
          throw new OperationConflictError(`Run ${id} is changing; look at it again before you resolve an operation.`);
        return { result: [] };
      });
      if (moved) break;
    }
    this.worker.wake();
  }

  private async move(runId: string, session: boolean, decide: (locked: LockedRun) => Moved): Promise<RunRecord> {
    const answer = await this.ports.store.transition({ runId: requireId('runId', runId), session, decide });
    if (answer.outcome !== 'done') throw notFound(runId);
    if (answer.result.length > 0)
      this.publisher.committed(answer.run, answer.run.sequence - answer.result.length + 1, answer.result);
    return answer.run;
  }

  private async loadOrThrow(runId: string): Promise<RunRecord> {
    const loaded = await this.ports.store.load(requireId('runId', runId));
    if (!loaded) throw notFound(runId);
    return loaded.run;
  }

  private async requireExecutable(run: RunRecord): Promise<void> {
    const workers = await this.ports.store.liveWorkers();
    const offers = [
      ...workers.flatMap((worker) => worker.offers),
      ...(this.ports.options.worker ? this.ports.catalog.offers() : []),
    ];
    if (run.contractVersion <= CONTRACT_VERSION && isOffered(run, offers)) return;
    const wanted = offerText({ agent: run.agent, version: run.version, hash: run.definitionHash });
    const offered = [...new Set(offers.filter(({ agent }) => agent === run.agent).map(offerText))].sort();
    throw new VersionUnavailableError(
      `No live worker can execute run ${run.id}: it needs ${wanted}. Deploy that version and try again.`,
      { details: { wanted, offered } },
    );
  }

  private outputProblems(
    run: RunRecord,
    state: RunState,
    key: string,
    { resolution }: Pick<ToolResolved, 'resolution'>,
  ): string[] {
    if (!('output' in resolution)) return [];
    const call = state.calls.find((candidate) => candidate.key === key);
    const tool = this.ports.catalog.find(run.agent, run.version)?.tools.find(({ name }) => name === call?.name);
    return tool?.caller.checkOutput(resolution.output) ?? [];
  }
}

// ---- deciders ----

function require(run: RunRecord, verb: RunVerb): void {
  if (!transitionOf(run.status, verb))
    throw new IllegalTransitionError(`Run ${run.id} is ${run.status}: ${verb} is not possible.`, {
      details: { runId: run.id, status: run.status, verb },
    });
}

interface Resume {
  maxTotalTokens: number | null;
  takeover: { by: string; reason: string } | null;
  note: CallerNote;
}

function decideResume(locked: LockedRun, { maxTotalTokens, takeover, note }: Resume): Moved {
  const { run, now, lease } = locked;
  const budget = maxTotalTokens === null ? {} : { budgetMaxTotalTokens: maxTotalTokens };
  if (run.status === 'running') {
    if (isExpired(locked)) return { result: [] };
    const leaseLeftMs = (lease?.expiresAt ?? now) - now;
    if (!takeover) {
      const details = { owner: run.owner, expiresAt: lease?.expiresAt };
      throw new RunLeasedError(
        `Run ${run.id} is owned by ${run.owner} for another ${leaseLeftMs} ms. Wait, or take it over with allowRunningTakeover and a confirmation that the owner is gone.`,
        { details },
      );
    }
    const entries: JournalEntry[] = [{ type: 'run.takeover_requested', at: now, ...takeover, leaseLeftMs }];
    const wake: WakeNote = {
      cause: 'takeover',
      ...takeover,
      leaseLeftMs,
      ...(run.owner !== null && { previousOwner: run.owner }),
    };
    return { result: entries, run: { change: { ...budget, status: 'pending', wake }, entries } };
  }
  if (run.status === 'pending' || run.status === 'retry_wait') return { result: [] };
  require(run, 'resume');
  const open = locked.interactions.filter(({ status }) => status === 'pending');
  if (open.length > 0)
    throw new OpenInteractionsError(
      `Run ${run.id} waits for ${open.length} open decisions: ${open.map(({ id }) => id).join(', ')}.`,
      { details: { interactions: open.map(({ id }) => id) } },
    );
  return pending(locked, 'resumed', note, { type: 'run.resume_requested', at: now, ...note }, budget);
}

function decideRetry(locked: LockedRun, note: CallerNote): Moved {
  const { run, session, now } = locked;
  require(run, 'retry');
  if (run.status === 'needs_attention')
    return pending(locked, 'retried', note, { type: 'run.retried', at: now, ...note });
  const serial = session?.mode === 'serial' ? session : null;
  if (serial && (serial.headRunId !== null || serial.startedOrder > (run.sessionOrder ?? 0))) {
    throw new IllegalTransitionError(
      `Run ${run.id} cannot be retried: a later run of session ${serial.id} has started.`,
      { details: { runId: run.id, status: run.status, verb: 'retry' } },
    );
  }
  const moved = pending(
    locked,
    'retried',
    note,
    { type: 'run.retried', at: now, ...note },
    { error: null, output: null, finishedAt: null },
  );
  return serial ? { ...moved, session: { headRunId: run.id } } : moved;
}

function decideResolution(
  locked: LockedRun,
  state: RunState,
  resolved: Omit<ToolResolved, 'at'>,
  problems: readonly string[],
): Moved {
  const { run, now } = locked;
  require(run, 'resolve');
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
  const entry: JournalEntry = { ...resolved, at: now };
  const left = blocked.filter(({ key }) => key !== resolved.key).map(({ key }) => key);
  const totals =
    'notHappened' in resolved.resolution ? {} : { totals: { ...run.totals, results: run.totals.results + 1 } };
  if (left.length === 0) {
    const moved = pending(locked, 'resolved', { by: resolved.by }, entry);
    return { ...moved, run: { ...(moved.run as NonNullable<Moved['run']>), ...totals } };
  }
  const attention = run.attention && { ...run.attention, operationKey: left[0] as string, operations: left };
  return { result: [entry], run: { change: { attention }, entries: [entry], ...totals } };
}

/** The run becomes claimable, and its next claim tells why. */
function pending(
  locked: LockedRun,
  cause: ClaimCause,
  note: CallerNote,
  entry: JournalEntry,
  change: Partial<RunRecord> = {},
): Moved {
  const wake: WakeNote = { cause, ...note };
  return {
    result: [entry],
    run: {
      change: {
        ...change,
        status: 'pending',
        wake,
        waitingFor: [],
        attention: null,
        nextAttemptAt: null,
        recoveries: 0,
        resultsAtClaim: locked.run.totals.results,
      },
      entries: [entry],
    },
  };
}

// ---- reading what callers gave ----

function readNote(note: CallerNote): CallerNote {
  const problems: FieldProblem[] = [];
  const told = noteOf(note, problems);
  if (problems.length > 0) throw invalid(problems);
  return told;
}

function noteOf(note: unknown, problems: FieldProblem[]): CallerNote {
  if (!isRecord(note)) {
    problems.push({ field: '', problem: 'must be an object' });
    return {};
  }
  const told: CallerNote = {};
  for (const field of ['by', 'reason'] as const) {
    const value = note[field];
    if (value === undefined) continue;
    if (typeof value === 'string' && value.length <= 4_000) told[field] = value;
    else problems.push({ field, problem: 'must be text of at most 4,000 characters' });
  }
  return told;
}

function readResume(options: ResumeOptions): Resume {
  const problems: FieldProblem[] = [];
  const note = noteOf(options, problems);
  const { budget, allowRunningTakeover, confirmation } = isRecord(options) ? (options as Record<string, unknown>) : {};
  if (allowRunningTakeover !== undefined && typeof allowRunningTakeover !== 'boolean')
    problems.push({ field: 'allowRunningTakeover', problem: 'must be true or false' });
  let takeover: Resume['takeover'] = null;
  if (allowRunningTakeover === true) {
    const { by, reason } = isRecord(confirmation) ? confirmation : {};
    if (typeof by === 'string' && by !== '' && typeof reason === 'string' && reason !== '') takeover = { by, reason };
    else
      problems.push({
        field: 'confirmation',
        problem: 'must be { by, reason }: who says that the owner is gone, and why',
      });
  }
  const maxTotalTokens = readBudget(budget, problems);
  if (problems.length > 0) throw invalid(problems);
  return { maxTotalTokens, takeover, note };
}

function readResolution(given: ToolResolution, maxBytes: number): { key: string; entry: Omit<ToolResolved, 'at'> } {
  const problems: FieldProblem[] = [];
  const value = isRecord(given) ? (given as Record<string, unknown>) : {};
  const { key, by, note } = value;
  if (typeof key !== 'string' || key === '') problems.push({ field: 'key', problem: 'must name an operation' });
  if (typeof by !== 'string' || by === '') problems.push({ field: 'by', problem: 'must say who knows' });
  if (note !== undefined && typeof note !== 'string') problems.push({ field: 'note', problem: 'must be text' });
  const ways = ['output', 'error', 'notHappened'].filter((way) => Object.hasOwn(value, way));
  if (ways.length !== 1)
    problems.push({ field: 'output', problem: 'or error or notHappened must be given, exactly one of them' });
  const resolution = ways.length === 1 ? readWay(value, maxBytes, problems) : null;
  if (problems.length > 0 || !resolution) throw invalid(problems);
  return {
    key: key as string,
    entry: {
      type: 'tool.resolved',
      key: key as string,
      resolution,
      by: by as string,
      ...(typeof note === 'string' && { note }),
      reconciled: true,
    },
  };
}

function readWay(
  value: Record<string, unknown>,
  maxBytes: number,
  problems: FieldProblem[],
): ToolResolved['resolution'] | null {
  if (Object.hasOwn(value, 'notHappened')) {
    if (value.notHappened === true) return { notHappened: true };
    problems.push({ field: 'notHappened', problem: 'must be true' });
    return null;
  }
  if (Object.hasOwn(value, 'error')) {
    const message = isRecord(value.error) ? value.error.message : undefined;
    if (typeof message === 'string' && message !== '') return { error: { message } };
    problems.push({ field: 'error', problem: 'must be { message: text }' });
    return null;
  }
  const output = normaliseResult(value.output, { maxBytes });
  if (output.ok) return { output: output.value };
  problems.push({ field: 'output', problem: `has no JSON form: ${output.problem} at ${output.path}` });
  return null;
}
