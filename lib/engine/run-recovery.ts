/**
 * The sweeps that free what crashed or was forgotten (I11). Called by the crons, or by a host with a scheduler of its own. Correct on any
 * number of processes at once: a sweep only finds; each run is decided again under its own lock. Never throws, never overlaps with itself here.
 */
import type { LockedRun, OverdueAnswer, RunWrites, WorkerRecord } from '../contracts/ports/run-store.port.js';
import { isOffered, offerText, type Offer } from '../contracts/agent-definition.js';
import type { Interaction } from '../contracts/interaction.js';
import type { JournalEntry } from '../contracts/journal-entry.js';
import { CONTRACT_VERSION } from '../contracts/run.js';
import { isSettled, type Attention } from '../contracts/run-status.js';
import { decideExhaustion, isClaimable, isExpired } from './claim-run.js';
import type { EnginePorts } from './engine-ports.js';
import type { EngineOptions } from './engine-options.js';
import { expiryDecision } from './interactions.js';
import type { RunState } from './journal/run-state.js';
import type { RunWorker } from './run-worker.js';
import type { CallerTransition } from './verbs/caller-transition.js';
import { takeDecisions, wakeAnswered } from './verbs/decide-interactions.js';
import { settlement } from './settle-run.js';
import { changeStatus, NOTHING, type Transitions } from './transitions.js';
import { recordedError, recordedFailure, recordedText } from './values/recorded-error.js';

/** Runs of each kind that one sweep looks at; the next sweep goes on. */
const BATCH = 200;

export class RunRecovery {
  private readonly running = new Map<string, Promise<void>>();

  constructor(
    private readonly ports: EnginePorts,
    private readonly worker: RunWorker,
    private readonly transitions: Transitions,
    private readonly callers: CallerTransition,
  ) {}

  /** Lost leases, exhausted and unoffered runs, passed deadlines. */
  reconcile(): Promise<void> {
    return this.once('reconcile', async () => {
      const workers = await this.ports.store.liveWorkers();
      const liveOffers = this.offersOf(workers);
      const overdue = await this.overdue(liveOffers);
      await this.each(overdue.pastDeadline, (locked) => decideDeadline(locked), true);
      if (this.knowsAllOffers(workers))
        await this.each(overdue.unoffered, (locked) => decideUnoffered(locked, liveOffers));
      await this.each(this.notHeld(overdue.expired), (locked) =>
        decideExhaustion(locked, this.ports.options.maxRecoveries),
      );
      // Where a person resumes them, they wait rightly.
      const forgotten = this.ports.options.resumeAfterAnswers === 'manual' ? [] : overdue.answered;
      for (const runId of forgotten) {
        await this.guarded('reconcile', runId, () =>
          this.callers.move(runId, false, (locked) => wakeAnswered(locked, this.ports.options)),
        );
      }
      if (overdue.expired.length > 0) this.worker.wakeForTakeover();
      else if (forgotten.length > 0) this.worker.wake();
    });
  }

  /** Due backoffs whose process died: any worker that looks will claim them. */
  runDueBackoffs(): Promise<void> {
    // Without waking it: a worker that finds nothing goes on polling as rarely as before.
    return this.once('backoff', () => this.worker.tick());
  }

  /** Asks nobody answered in time. */
  expireInteractions(): Promise<void> {
    return this.once('expire', async () => {
      const { expiredInteractions } = await this.overdue(this.offersOf(await this.ports.store.liveWorkers()));
      for (const runId of expiredInteractions) {
        await this.guarded('expire', runId, () =>
          this.callers.moveFolded(
            runId,
            false,
            (locked, state) => decideExpiry(locked, state, this.ports.options),
            ({ run }) => run.status === 'running',
          ),
        );
      }
      if (expiredInteractions.length > 0) this.worker.wake();
    });
  }

  /**
   * The first worker after an outage, of a deploy or of the database, finds runs that waited for long, and nobody else yet. Only when one has been live for
   * `unknownVersionAfter` without a gap have the others had their time to come.
   */
  private knowsAllOffers(workers: readonly WorkerRecord[]): boolean {
    return workers.some(
      ({ startedAt, heartbeatAt }) => heartbeatAt - startedAt >= this.ports.options.unknownVersionAfterMs,
    );
  }

  private offersOf(workers: readonly WorkerRecord[]): Offer[] {
    const own = this.ports.options.worker ? this.ports.catalog.offers() : [];
    return [...workers.flatMap(({ offers }) => offers), ...own];
  }

  private overdue(liveOffers: readonly Offer[]): Promise<OverdueAnswer> {
    const { unknownVersionAfterMs } = this.ports.options;
    return this.ports.store.overdue({
      liveOffers,
      contractVersion: CONTRACT_VERSION,
      unofferedAfterMs: unknownVersionAfterMs,
      limit: BATCH,
    });
  }

  /** A run this process still brings a result home for is left alone. */
  private notHeld(runIds: readonly string[]): string[] {
    return runIds.filter((id) => !this.worker.holds(id));
  }

  private async each(
    runIds: readonly string[],
    decide: (locked: LockedRun) => RunWrites,
    session = false,
  ): Promise<void> {
    for (const runId of runIds) {
      await this.guarded('reconcile', runId, async () => {
        const answer = await this.transitions.apply(runId, decide, { session, skipLocked: true });
        if (answer.outcome !== 'done' || !answer.decision.run) return;
        this.ports.log.debug('a run was moved by a sweep', {
          runId,
          status: answer.run.status,
          reason: answer.run.attention?.reason ?? answer.run.error?.code,
        });
      });
    }
  }

  /** One run's trouble keeps no other from being looked at. */
  private async guarded(sweep: string, runId: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.report(sweep, error, { runId });
    }
  }

  private once(name: string, work: () => Promise<void>): Promise<void> {
    const running = this.running.get(name);
    if (running) return running;
    const started = work()
      .catch((error: unknown) => this.report(name, error))
      .finally(() => this.running.delete(name));
    this.running.set(name, started);
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
  const error = recordedFailure('RUN_TIMED_OUT', 'The run passed its deadline.');
  return settlement(locked, 'time_out', [{ type: 'run.timed_out', at: now, error }], { error });
}

function decideUnoffered(locked: LockedRun, liveOffers: readonly Offer[]): RunWrites {
  const { run, now } = locked;
  if (!isClaimable(locked) || (run.contractVersion <= CONTRACT_VERSION && isOffered(run, liveOffers))) return NOTHING;
  const wanted = offerText({ agent: run.agent, version: run.version, hash: run.definitionHash });
  const offered =
    [...new Set(liveOffers.filter(({ agent }) => agent === run.agent).map(offerText))].sort().join(', ') ||
    'nothing of this agent';
  const attention: Attention = {
    reason: 'version_mismatch',
    detail: recordedText(
      `No live worker offers ${wanted}; offered: ${offered}. Deploy that version again, then resume or retry the run.`,
    ),
  };
  const entries: JournalEntry[] = [{ type: 'run.attention_needed', at: now, attention }];
  return { run: changeStatus(run, 'call_attention', entries, { attention, nextAttemptAt: null }) };
}
