import type { Offer } from '../contracts/agent-definition.js';
import type { RecordedText } from '../contracts/text.js';
import { recordedError, recordedText } from './values/recorded-error.js';
import { endedWithin } from './timed-call.js';
import { failureOf } from './failure.js';
import type { EngineOptions, EnginePorts } from './engine-ports.js';

/** Into how many equal parts a lease is divided, and what one of them is for. */
const LEASE_PARTS = {
  /** Renewals are this far apart; a transaction of a tool may take as long to open. */
  renewal: 3,
  /** The runs are let go of this long before the end. */
  guard: 6,
  /** Until a renewal that failed is sent again, at most a second. */
  retry: 10,
  /** Left to the first instructions of an effect. */
  entry: 20,
} as const;

/** Ms of one such part. */
export function leasePart({ leaseMs }: Pick<EngineOptions, 'leaseMs'>, part: keyof typeof LEASE_PARTS): number {
  return leaseMs / LEASE_PARTS[part];
}

interface LeaseHooks {
  /** The lease can no longer be relied upon: stop acting before it ends. */
  onLost(): void;
  /** It was renewed after having been lost. */
  onRegained(): void;
  onBroken(error: unknown): void;
}

/**
 * This process's lease: one row for all its runs, renewed every third of its length, also during long calls and while
 * draining. It is counted from before a renewal was sent and by `elapsed()`, so that this process believes itself
 * shorter-lived than the database does (I12), whatever is done to its wall clock.
 */
export class WorkerLease {
  /** By `elapsed()`, like everything here that is compared. */
  private heldUntil = Number.NEGATIVE_INFINITY;
  private beatenAt: number | null = null;
  private trouble: RecordedText | null = null;
  private stopped = true;
  private lost = false;
  /** It ended by the clock, and its guard has not come yet. */
  private doubted = false;
  private beats = 0;
  /** Counts the leases of this worker: a new one begins where the one before had ended. */
  term = 0;
  private beatDueAt = Number.POSITIVE_INFINITY;
  private cancelBeat: () => void = () => undefined;
  private cancelGuard: () => void = () => undefined;
  /** Renewals that were sent and not answered yet. */
  private readonly underWay = new Set<Promise<unknown>>();
  /** Since when the row has been live without a gap: by the store's clock once it has answered. */
  private startedAt: number;

  constructor(
    private readonly ports: EnginePorts,
    readonly workerId: string,
    private readonly offers: () => readonly Offer[],
    private readonly hooks: LeaseHooks,
  ) {
    this.startedAt = ports.clock.now();
  }

  /**
   * Whether an effect may begin now; leaves a twentieth of the lease for its first instructions. Not between letting go
   * and the next renewal: what was begun then, nobody would tell to stop.
   * @param term of this lease and no later one: what was claimed before it ended may belong to others since
   */
  isHeld(term = this.term): boolean {
    return !this.lost && term === this.term && this.isUnexpired();
  }

  private isUnexpired(): boolean {
    return this.ports.clock.elapsed() < this.heldUntil - leasePart(this.ports.options, 'entry');
  }

  get lastBeatAt(): number | null {
    return this.beatenAt;
  }

  /** Why the last renewal failed; null when it did not. */
  get failure(): RecordedText | null {
    return this.trouble;
  }

  /**
   * How late the timer of the next renewal is, in ms, where that is more than a sixth of the lease; else 0. Nothing but
   * a process that stood still delays it: a method that never yields, a suspended machine.
   */
  get standstillMs(): number {
    const lateMs = this.stopped ? 0 : this.ports.clock.elapsed() - this.beatDueAt;
    return lateMs > leasePart(this.ports.options, 'guard') ? lateMs : 0;
  }

  /** Resolves after the first try, whether or not it succeeded; renewals go on in the background. */
  async start(): Promise<void> {
    this.stopped = false;
    await this.beat();
  }

  /**
   * To be called now and then. A lease that ended though its guard has not come yet: the machine was suspended, or its
   * clock set ahead. It is renewed at once; what runs here is let go of when that is not answered soon.
   */
  confirm(): void {
    if (this.beatenAt === null || this.stopped || this.lost || this.doubted || this.isUnexpired()) return;
    this.doubted = true;
    this.guardIn(leasePart(this.ports.options, 'guard'));
    void this.beat();
  }

  /** No more renewals; the row stays until it expires or is retired. */
  stop(): void {
    this.stopped = true;
    this.cancelBeat();
    this.cancelGuard();
  }

  /**
   * Resolves when no renewal is under way any more, or so many ms later: one that lands after the worker's row was
   * retired would bring it back. Those of a database that has let the lease run out are not waited for.
   */
  async quiet(ms: number): Promise<void> {
    if (this.underWay.size === 0 || !this.isHeld()) return;
    await endedWithin(this.ports.clock, ms, Promise.allSettled(this.underWay));
  }

  private async send(): Promise<number> {
    const renewal = this.ports.store.heartbeat({
      workerId: this.workerId,
      leaseMs: this.ports.options.leaseMs,
      startedAt: this.startedAt,
      offers: this.offers(),
    });
    this.underWay.add(renewal);
    try {
      return (await renewal).now;
    } finally {
      this.underWay.delete(renewal);
    }
  }

  private async beat(): Promise<void> {
    const { clock, options } = this.ports;
    const sentAt = clock.elapsed();
    const shownAt = clock.now();
    const number = ++this.beats;
    // Others may have judged this worker dead: its row begins anew, and by the store's clock as soon as that has
    // answered.
    const begins = !this.isUnexpired();
    if (begins) this.startedAt = shownAt;
    // A renewal that is never answered must not be the last one.
    this.beatAfter(leasePart(options, 'renewal'));
    try {
      const storedAt = await this.send();
      if (this.stopped) return;
      if (begins || !this.isUnexpired()) this.term += 1;
      if (begins) this.startedAt = storedAt;
      if (sentAt + options.leaseMs > this.heldUntil) {
        this.heldUntil = sentAt + options.leaseMs;
        this.beatenAt = shownAt;
      }
      if (number === this.beats) this.beatAfter(leasePart(options, 'renewal'));
      // The answer may have taken longer than the lease lasts.
      if (!this.isUnexpired()) return;
      this.doubted = false;
      this.trouble = null;
      this.guard();
      if (this.lost) {
        this.lost = false;
        this.hooks.onRegained();
      }
    } catch (error) {
      if (this.stopped || number !== this.beats) return;
      const { code, message } = recordedError(error, 'STORE_UNAVAILABLE');
      this.trouble = recordedText(`${code}: ${message}`);
      if (failureOf(error) !== 'unavailable') return this.hooks.onBroken(error);
      this.ports.log.warn('the lease could not be renewed; trying again', { workerId: this.workerId, code });
      this.beatAfter(Math.min(1_000, leasePart(options, 'retry')));
    }
  }

  private beatAfter(ms: number): void {
    this.cancelBeat();
    this.beatDueAt = this.ports.clock.elapsed() + ms;
    this.cancelBeat = this.ports.clock.after(ms, () => void this.beat());
  }

  /** Fires a sixth of the lease before its end, unless a renewal came first. */
  private guard(): void {
    const { clock, options } = this.ports;
    this.guardIn(this.heldUntil - leasePart(options, 'guard') - clock.elapsed());
  }

  private guardIn(ms: number): void {
    this.cancelGuard();
    this.cancelGuard = this.ports.clock.after(Math.max(1, ms), () => {
      this.lost = true;
      this.trouble ??= recordedText('the lease is running out and its renewal is not answered');
      this.ports.log.error('the lease is running out and could not be renewed; letting go of all runs', {
        workerId: this.workerId,
      });
      this.hooks.onLost();
    });
  }
}
