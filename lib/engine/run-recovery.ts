import type { LockedRun, OverdueAnswer, RunWrites, WorkerRecord } from '../contracts/ports/run-store.port.js';
import { isOffered, type Offer, wantedAndOffered } from '../contracts/agent-definition.js';
import type { Interaction } from '../contracts/interaction.js';
import { CONTRACT_VERSION } from '../contracts/run.js';
import { isSettled, type Attention } from '../contracts/run-status.js';
import { decideExhaustion, isClaimable, isExpired, offersOf } from './claim-run.js';
import type { EngineOptions, EnginePorts } from './engine-ports.js';
import { expiryDecision } from './interactions.js';
import type { RunState } from './journal/run-state.js';
import type { RunWorker } from './run-worker.js';
import type { CallerTransition } from './verbs/caller-transition.js';
import { takeDecisions, wakeAnswered } from './verbs/waiting-runs.js';
import { deadlinePassed, settlement } from './settle-run.js';
import { callAttention, NOTHING, type Transitions } from './transitions.js';
import { recordedError, recordedText } from './values/recorded-error.js';

/** Runs of each kind that one sweep looks at; the next sweep goes on. */
const BATCH = 200;

/**
 * The sweeps that free what crashed or was forgotten (I11). Called by the crons, or by a host with a scheduler of its
 * own. Correct on any number of processes at once: a sweep only finds; each run is decided again under its own lock.
 * Never throws, never overlaps with itself here.
 */
export class RunRecovery {
  private readonly running = new Map<string, Promise<void>>();

  /** @internal */
  constructor(
    private readonly ports: EnginePorts,
    private readonly worker: RunWorker,
    private readonly transitions: Transitions,
    private readonly callers: CallerTransition,
  ) {}

  /** Lost leases, exhausted and unoffered runs, passed deadlines. */
  reconcile(): Promise<void> {
    return this.once('reconcile', async (sweep) => {
      const { options, store } = this.ports;
      const workers = await store.liveWorkers();
      const liveOffers = offersOf(this.ports, workers);
      const { pastDeadline, unoffered, expired, answered } = await this.overdue(liveOffers);
      // A run that this process still brings a result home for is left alone; so is its own deadline.
      const unheld = (ids: readonly string[]) => ids.filter((id) => !this.worker.holds(id));
      await this.each(sweep, unheld(pastDeadline), (id) => this.move(id, decideDeadline, true));
      if (this.knowsAllOffers(workers))
        await this.each(sweep, unoffered, (id) => this.move(id, (locked) => decideUnoffered(locked, liveOffers)));
      await this.each(sweep, unheld(expired), (id) =>
        this.move(id, (locked) => decideExhaustion(locked, options.maxRecoveries)),
      );
      // Where a person resumes them, they wait rightly.
      const forgotten = options.resumeAfterAnswers === 'manual' ? [] : answered;
      await this.each(sweep, forgotten, (id) =>
        this.callers.move(id, false, (locked) => wakeAnswered(locked, options)),
      );
      if (expired.length > 0) this.worker.wakeForTakeover();
      else if (forgotten.length > 0) this.worker.wake();
    });
  }

  /** Due backoffs whose process died: any worker that polls will claim them. */
  runDueBackoffs(): Promise<void> {
    // Without waking it: a worker that finds nothing goes on polling as rarely as before.
    return this.once('backoff', () => this.worker.tick());
  }

  /** Interactions that were not decided in time. */
  expireInteractions(): Promise<void> {
    return this.once('expire', async (sweep) => {
      const { options, store } = this.ports;
      const { expiredInteractions } = await this.overdue(offersOf(this.ports, await store.liveWorkers()));
      await this.each(sweep, expiredInteractions, (id) =>
        this.callers.moveFolded(
          id,
          false,
          (locked, state) => decideExpiry(locked, state, options),
          ({ run }) => run.status === 'running',
        ),
      );
      if (expiredInteractions.length > 0) this.worker.wake();
    });
  }

  /**
   * The first worker after an outage, of a deploy or of the database, finds runs that waited for long, and no other
   * worker yet. Only when one has been live for `unknownVersionAfter` without a gap have the others had their time to
   * come.
   */
  private knowsAllOffers(workers: readonly WorkerRecord[]): boolean {
    const { unknownVersionAfterMs } = this.ports.options;
    return workers.some(({ startedAt, heartbeatAt }) => heartbeatAt - startedAt >= unknownVersionAfterMs);
  }

  private overdue(liveOffers: readonly Offer[]): Promise<OverdueAnswer> {
    const unofferedAfterMs = this.ports.options.unknownVersionAfterMs;
    return this.ports.store.overdue({ liveOffers, contractVersion: CONTRACT_VERSION, unofferedAfterMs, limit: BATCH });
  }

  private async move(runId: string, decide: (locked: LockedRun) => RunWrites, session = false): Promise<void> {
    const answer = await this.transitions.apply(runId, decide, { session, skipLocked: true });
    if (answer.outcome !== 'done' || !answer.decision.run) return;
    const { status, attention, error } = answer.run;
    this.ports.log.debug('a run was moved by a sweep', { runId, status, reason: attention?.reason ?? error?.code });
  }

  /** One after the other; the trouble of one run keeps no other from being moved. */
  private async each(sweep: string, runIds: readonly string[], move: (id: string) => Promise<unknown>): Promise<void> {
    for (const runId of runIds) await move(runId).catch((error: unknown) => this.report(sweep, error, { runId }));
  }

  private once(sweep: string, work: (sweep: string) => Promise<void>): Promise<void> {
    const running = this.running.get(sweep);
    if (running) return running;
    const started = work(sweep)
      .catch((error: unknown) => this.report(sweep, error))
      .finally(() => this.running.delete(sweep));
    this.running.set(sweep, started);
    return started;
  }

  private report(sweep: string, error: unknown, fields: Record<string, unknown> = {}): void {
    const { code, message } = recordedError(error, 'STORE_UNAVAILABLE');
    this.ports.log.warn('a sweep failed; the next one tries again', { sweep, ...fields, code, message });
  }
}

function decideExpiry(locked: LockedRun, state: RunState, options: EngineOptions): RunWrites {
  const expired = locked.interactions.filter(
    ({ status, expiresAt }) => status === 'pending' && expiresAt !== null && expiresAt <= locked.now,
  );
  const decided = expired.map((asked): Interaction => ({
    ...asked,
    status: 'expired',
    decision: expiryDecision(asked.kind),
    decidedAt: locked.now,
  }));
  return decided.length === 0 ? NOTHING : takeDecisions(locked, state, decided, options);
}

function decideDeadline(locked: LockedRun): RunWrites {
  const { run, now } = locked;
  if (isSettled(run.status) || run.deadlineAt === null || run.deadlineAt > now) return NOTHING;
  // A live owner settles it itself, and knows what is in flight.
  if (run.status === 'running' && !isExpired(locked)) return NOTHING;
  const error = deadlinePassed();
  return settlement(locked, 'time_out', [{ type: 'run.timed_out', at: now, error }], { error });
}

function decideUnoffered(locked: LockedRun, liveOffers: readonly Offer[]): RunWrites {
  const { run } = locked;
  if (!isClaimable(locked) || (run.contractVersion <= CONTRACT_VERSION && isOffered(run, liveOffers))) return NOTHING;
  const { wanted, offered } = wantedAndOffered(run, liveOffers);
  const attention: Attention = {
    reason: 'version_mismatch',
    detail: recordedText(
      `No live worker offers ${wanted}; offered: ${offered.join(', ') || 'nothing of this agent'}. Deploy that version again, then resume or retry the run.`,
    ),
  };
  return callAttention(locked, attention, { nextAttemptAt: null });
}
