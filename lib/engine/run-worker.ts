import type { HeldRunState } from '../contracts/ports/run-store.port.js';
import type { RecordedText } from '../contracts/text.js';
import type { RunStatus } from '../contracts/run-status.js';
import type { WorkerStatus } from '../contracts/run-view.js';
import { endedWithin } from './timed-call.js';
import { failureOf } from './failure.js';
import type { EnginePorts } from './engine-ports.js';
import { RunExecution } from './execution/run-execution.js';
import type { Claimed } from './execution/attempt.js';
import type { JournalFold } from './journal/fold-journal.js';
import { WorkerLease } from './worker-lease.js';
import type { LifecyclePublisher } from './lifecycle-publisher.js';
import { RunClaimer } from './run-claimer.js';
import type { RunWaits } from './run-waits.js';
import type { Transitions } from './transitions.js';
import { recordedError, recordedText, thrownMessage } from './values/recorded-error.js';

/** How long a shutdown still waits for calls in flight that it has aborted. */
const ABORT_GRACE_MS = 1_000;

/**
 * Executes runs in this process: polls, claims what fits, keeps the lease, notices what others did to its runs, and
 * lets go in an orderly way. A tick never throws; store trouble makes the worker wait (I10), a broken promise of the
 * store makes it stop for good.
 */
export class RunWorker {
  /** As in `owner` of the runs it executes; new for each process. */
  readonly workerId: string;
  private readonly executions = new Map<string, RunExecution>();
  /** @internal */
  readonly lease: WorkerLease;
  private readonly claimer: RunClaimer;
  private readonly timers = new Set<() => void>();
  private state: 'off' | 'running' | 'paused' | 'draining' | 'failed' = 'off';
  private failure: Error | null = null;
  private trouble: RecordedText | null = null;
  private ticking: Promise<void> | null = null;
  private tickAgain = false;
  private idleMs: number;
  private cancelPoll: () => void = () => undefined;
  private draining: Promise<void> | null = null;
  private onIdle: () => void = () => undefined;

  /** @internal */
  constructor(
    /** @internal */
    readonly ports: EnginePorts,
    /** @internal */
    readonly fold: JournalFold,
    /** @internal */
    readonly publisher: LifecyclePublisher,
    transitions: Transitions,
    private readonly waits: RunWaits,
  ) {
    this.workerId = `${ports.options.workerName}-${ports.ids.id()}`;
    this.idleMs = ports.options.pollMs;
    this.claimer = new RunClaimer(ports, fold, transitions, this);
    this.lease = new WorkerLease(ports, this.workerId, () => ports.catalog.offers(), {
      onLost: () => this.letGo('the lease is running out'),
      onRegained: () => this.wake(),
      onBroken: (error) => this.break(error),
    });
  }

  /** First heartbeat, then claiming. Called once by the module at bootstrap; with `worker: false` does nothing. */
  async start(): Promise<void> {
    if (!this.ports.options.worker || this.state !== 'off') return;
    this.state = 'running';
    await this.lease.start();
    this.wake();
  }

  /** Stop claiming; runs in progress go on. */
  pause(): void {
    if (this.state === 'running') this.state = 'paused';
  }

  /** Claims again after `pause`. */
  resume(): void {
    if (this.state !== 'paused') return;
    this.state = 'running';
    this.wake();
  }

  /**
   * Stops claiming, parks runs, waits `shutdownTimeout`, aborts, releases. Never rejects; a second call joins the
   * first.
   */
  drain(): Promise<void> {
    return (this.draining ??= this.drainOnce());
  }

  /** From memory, never from the store. */
  status(): WorkerStatus {
    const reason = this.failure ? recordedText(thrownMessage(this.failure)) : (this.lease.failure ?? this.trouble);
    const beat = this.lease.lastBeatAt;
    return {
      state: this.state === 'running' ? (reason === null ? 'ready' : 'degraded') : this.state,
      workerId: this.workerId,
      activeRuns: this.executions.size,
      waitingRuns: this.waits.count(this.executions.keys()),
      maxConcurrentRuns: this.ports.options.maxConcurrentRuns,
      ...(beat !== null && { lastHeartbeatAt: new Date(beat) }),
      ...(reason !== null && { reason }),
    };
  }

  /**
   * One turn: look for due runs, claim what fits, look after the runs held here. Calls during a turn lead to one more
   * turn after it.
   */
  tick(): Promise<void> {
    if (this.ticking) this.tickAgain = true;
    // The turn is not part of the run whose code may have asked for it.
    return (this.ticking ??= this.ports.scope.enter(null, () => this.tickUntilQuiet()));
  }

  /** Something may be claimable: look now instead of at the next poll. */
  wake(): void {
    if (this.state !== 'running' && this.executions.size === 0) return;
    this.idleMs = this.ports.options.pollMs;
    void this.tick();
  }

  /** @internal Expired runs were found: the next turns look for them too, until none is left. */
  wakeForTakeover(): void {
    this.claimer.takeovers = true;
    this.wake();
  }

  /** @internal The error that stopped this worker for good, if one did. */
  get brokenBy(): Error | null {
    return this.failure;
  }

  /** @internal */
  holds(runId: string): boolean {
    return this.executions.has(runId) || this.claimer.claiming.has(runId);
  }

  /** @internal The run is no longer ours by a caller's doing in this process. */
  drop(runId: string, reason: string): void {
    this.executions.get(runId)?.lose(reason);
  }

  /**
   * @internal A caller of this process wants it stopped at its next boundary; other processes see the flag at their next poll.
   */
  interrupt(runId: string): void {
    this.executions.get(runId)?.interrupt();
  }

  /** @internal A message of this process waits for it. */
  noticeInbox(runId: string): void {
    const execution = this.executions.get(runId);
    if (execution) execution.inboxWaiting = true;
  }

  /**
   * @internal A slot for a run that is about to be created here; null when there is none. The caller must `adopt` or release it.
   */
  reserve(runId: string): (() => void) | null {
    if (this.slots() === 0) return null;
    this.claimer.claiming.set(runId, this.lease.term);
    return () => this.claimer.release(runId);
  }

  /** @internal A run of this process waits for this one, and left its slot: to it, before others, if it is claimable. */
  async executeAwaited(runId: string, status: RunStatus): Promise<void> {
    if (status === 'pending' && this.slots() > 0 && !this.holds(runId))
      await this.ports.scope
        .enter(null, () => this.claimer.claim({ id: runId, status }))
        .catch((error: unknown) => this.afterTrouble(error));
    this.wake();
  }

  /** @internal The create's answer was lost: the run may exist, claimed by us. */
  addUnconfirmedClaim(runId: string): void {
    this.claimer.addUnconfirmedClaim(runId);
  }

  /** @internal Executes a run that was claimed for this worker. */
  adopt(claimed: Claimed): void {
    const { id, sessionId } = claimed.run;
    const term = this.claimer.claiming.get(id) ?? this.lease.term;
    const execution = new RunExecution(this, claimed, term);
    this.executions.set(id, execution);
    this.claimer.claiming.delete(id);
    void execution.ended.then((end) => {
      if (this.executions.get(id) === execution) this.executions.delete(id);
      this.checkIdle();
      // Lost, but perhaps to nobody: a run that is still ours must not stay running with a live lease and no one at
      // work (I11).
      if (end === 'lost') this.claimer.addUnconfirmedClaim(id, true);
      if (end === 'lost' || end === 'pending' || sessionId !== null || !this.claimer.sawEnd) this.wake();
    });
    // What was claimed as the shutdown began, or under a lease that has ended since, is put back without a step.
    if (this.state === 'draining' || !this.lease.isHeld(term)) execution.park();
    else this.ports.scope.enter(null, () => execution.begin());
  }

  // ---- turns ----

  private async tickUntilQuiet(): Promise<void> {
    this.cancelPoll();
    let found = false;
    try {
      do {
        this.tickAgain = false;
        found = await this.turn();
      } while (this.tickAgain);
      this.trouble = null;
    } catch (error) {
      this.afterTrouble(error);
    } finally {
      this.ticking = null;
      this.schedulePoll(found);
    }
  }

  /** @returns whether a run was claimed */
  private async turn(): Promise<boolean> {
    if (this.state === 'off' || this.state === 'failed') return false;
    const { claimer } = this;
    claimer.sawEnd = false;
    this.lease.confirm();
    await claimer.resolveUnconfirmed();
    const slots = this.slots();
    const held = [...this.executions.keys()];
    if (slots === 0 && held.length === 0) {
      claimer.spread.reset();
      return false;
    }
    const due = await claimer.findDue(slots, held);
    this.lookAfter(held, due.held);
    const { claimed, isMore } = await claimer.claimDue(due.claimable, slots);
    if (isMore) this.tickAgain = true;
    return claimed > 0;
  }

  /** What others did to the runs held here: cancelled, settled, taken over. */
  private lookAfter(asked: readonly string[], states: readonly HeldRunState[]): void {
    for (const id of asked) {
      const execution = this.executions.get(id);
      if (!execution) continue;
      const stored = states.find((state) => state.id === id);
      if (stored?.status === 'running' && stored.attempt === execution.run.attempt) {
        if (stored.interruptRequested) execution.interrupt();
        if (stored.hasInbox) execution.inboxWaiting = true;
        continue;
      }
      // Its own transition out of `running` may just have been committed, and its answer will tell.
      if (execution.isLeaving) continue;
      execution.lose(stored ? `the run is ${stored.status}, attempt ${stored.attempt}` : 'the run no longer exists');
    }
  }

  /** @internal How many more runs may be claimed or started here now. */
  slots(): number {
    if (this.state !== 'running' || !this.lease.isHeld()) return 0;
    const waiting = this.waits.count(this.executions.keys());
    const taken = this.executions.size + this.claimer.claiming.size - waiting;
    return Math.max(0, this.ports.options.maxConcurrentRuns - taken);
  }

  private schedulePoll(found: boolean): void {
    if (this.state === 'off' || this.state === 'failed' || (this.state === 'draining' && this.executions.size === 0))
      return;
    const { pollMs, pollIdleMs } = this.ports.options;
    const busy = found || this.executions.size > 0;
    this.idleMs = busy ? pollMs : Math.min(Math.max(pollMs, pollIdleMs), this.idleMs * 1.5);
    const jitteredMs = (busy ? pollMs : this.idleMs) * (1 - this.ports.ids.random() * 0.1);
    const waitMs = this.claimer.spread.pauseMs(pollMs) ?? jitteredMs;
    this.cancelPoll = this.ports.clock.after(Math.max(1, waitMs), () => void this.tick());
  }

  private afterTrouble(error: unknown): void {
    this.claimer.spread.reset();
    if (failureOf(error) === 'broken') return this.break(error);
    const { code, message } = recordedError(error, 'STORE_UNAVAILABLE');
    this.trouble = recordedText(`${code}: ${message}`);
    this.ports.log.warn('looking for due runs failed; trying again at the next poll', {
      workerId: this.workerId,
      code,
    });
  }

  // ---- letting go ----

  private async drainOnce(): Promise<void> {
    if (this.state === 'failed' || !this.ports.options.worker) return;
    const { state } = this;
    this.state = 'draining';
    if (state === 'off') return;
    for (const cancel of this.timers) cancel();
    this.timers.clear();
    for (const execution of this.executions.values()) execution.park();
    await this.allEnded(this.ports.options.shutdownTimeoutMs);
    if (this.executions.size > 0) {
      for (const execution of this.executions.values()) execution.abortCalls('the process is shutting down');
      await this.allEnded(ABORT_GRACE_MS);
    }
    this.lease.stop();
    this.cancelPoll();
    // A database that does not answer must not hold the shutdown.
    if (!(await endedWithin(this.ports.clock, ABORT_GRACE_MS, this.signOff()))) this.warnUnsigned();
    // The last turn may have scheduled another one.
    this.cancelPoll();
  }

  /** Never rejects. */
  private async signOff(): Promise<void> {
    await this.ticking;
    await this.lease.quiet(ABORT_GRACE_MS);
    const { workerId } = this;
    const runs = this.executions.size;
    if (runs === 0) return this.ports.store.retireWorker(workerId).catch((error: unknown) => this.warnUnsigned(error));
    // A call that is still in flight keeps its lease to expire: it must not be believed over while it can still act.
    const message = 'shut down with calls in flight; their runs are recovered when the lease expires';
    this.ports.log.warn(message, { workerId, runs });
  }

  private warnUnsigned(error?: unknown): void {
    const code = error === undefined ? {} : { code: recordedError(error, 'STORE_UNAVAILABLE').code };
    this.ports.log.warn('the worker could not sign off; its lease will expire', { workerId: this.workerId, ...code });
  }

  /** Resolves once nothing is executed or claimed here, or so many ms later. */
  private async allEnded(ms: number): Promise<void> {
    const idle = new Promise<void>((resolve) => (this.onIdle = resolve));
    this.checkIdle();
    await endedWithin(this.ports.clock, ms, idle);
  }

  /** @internal Fewer runs are executed or claimed here than before. */
  checkIdle(): void {
    if (this.executions.size === 0 && this.claimer.claiming.size === 0) this.onIdle();
  }

  private letGo(reason: string): void {
    for (const execution of this.executions.values()) {
      execution.park();
      execution.abortCalls(reason);
    }
  }

  /** @internal The store broke a promise: this worker stops for good. */
  break(error: unknown): void {
    if (this.failure) return;
    this.failure = error instanceof Error ? error : new Error(String(error));
    this.state = 'failed';
    this.lease.stop();
    this.cancelPoll();
    for (const execution of this.executions.values()) execution.lose('the store broke a promise');
    this.ports.log.error('the store broke a promise; this worker has stopped for good', {
      workerId: this.workerId,
      ...recordedError(error, 'STORE_BROKEN'),
    });
    const { onStoreFailure } = this.ports.options;
    const failure = this.failure;
    // Async, so that a handler that rejects is as harmless as one that throws.
    void (async () => onStoreFailure?.(failure))().catch((thrown: unknown) =>
      this.ports.log.error('onStoreFailure threw', { ...recordedError(thrown, 'INVALID_CONFIGURATION') }),
    );
  }

  /** @internal A run becomes claimable after so many ms. */
  wakeAfter(ms: number): void {
    if (ms <= 0 || this.state === 'draining') return;
    const cancel = this.ports.clock.after(ms, () => {
      this.timers.delete(cancel);
      this.wake();
    });
    this.timers.add(cancel);
  }
}
