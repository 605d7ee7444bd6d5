import { StoreUnavailableError } from '../../../errors/store.errors.js';
import { type ConflictCounter, DatabaseFailure, forCaller } from '../database-failure.js';
import { HostTransactions } from './host-transactions.js';
import type { SqliteSession } from './sqlite-session.js';

/** Jobs in one commit: bounds how long the event loop stands still. */
const MAX_GROUP = 256;
/** Wait before a held lock is asked for again; the longer it is held, the longer. */
const FIRST_RETRY_MS = 1;
const LAST_RETRY_MS = 25;

export interface Work<T> {
  /** Runs inside the group's transaction; may run again after a rollback. */
  (session: SqliteSession): T;
}

interface Job {
  readonly work: Work<unknown>;
  readonly doing: string;
  /** By `performance.now()`. */
  readonly deadline: number;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

/** How a job came out of a transaction that was committed. */
type Outcome = { value: unknown } | { error: unknown };

/** The group has to be taken apart: one of its jobs failed after it had written. */
const SPOILED = Symbol('spoiled');

export interface ExclusiveTurn {
  readonly session: SqliteSession;
  /** Lets the line go on. Idempotent. */
  release(): void;
}

/**
 * The one line of writers on SQLite's one connection. Whatever was submitted when a turn begins is committed together, by one BEGIN IMMEDIATE
 * and one COMMIT in one synchronous turn; nobody is told before that COMMIT (I2). A turn begins only when no transaction of the host is open, for our rows
 * would share its fate; a lock of another process is asked for again later, never waited for inside a turn. Jobs keep their order, and a job that fails
 * takes nothing of its neighbours' with it.
 */
export class CommitQueue {
  private jobs: Job[] = [];
  private readonly claims: Job[] = [];
  private owned = false;
  private scheduled = false;
  private retry: NodeJS.Timeout | undefined;
  private alarm: NodeJS.Timeout | undefined;
  private retryAfterMs = FIRST_RETRY_MS;

  constructor(
    private readonly host: HostTransactions,
    private readonly session: () => SqliteSession,
    private readonly timeoutMs: number,
    private readonly conflicts: ConflictCounter,
  ) {}

  /**
   * Runs work in a transaction of ours and resolves with its value once that is durable.
   * @param doing what it is, in words, for errors
   */
  submit<T>(doing: string, work: Work<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.jobs.push({ work, doing, deadline: performance.now() + this.timeoutMs, resolve, reject });
      this.schedule();
    });
  }

  /** Gives the connection to one caller alone, after everything submitted before. `begin` runs in the turn in which it is given. */
  claim(doing: string, begin: (session: SqliteSession) => void): Promise<ExclusiveTurn> {
    return new Promise<ExclusiveTurn>((resolve, reject) => {
      const work = (session: SqliteSession): ExclusiveTurn => {
        begin(session);
        return { session, release: this.owning() };
      };
      this.claims.push({ work, doing, deadline: performance.now() + this.timeoutMs, resolve, reject });
      this.schedule();
    });
  }

  /** Resolves when nothing submitted so far is left. */
  async drained(): Promise<void> {
    while (this.jobs.length > 0 || this.claims.length > 0 || this.owned)
      await new Promise((next) => setTimeout(next, 1));
  }

  stop(): void {
    clearTimeout(this.retry);
    clearTimeout(this.alarm);
  }

  /** One event-loop turn later: all that can be submitted without waiting for anything has been, and I/O gets its share between commits. */
  private schedule(): void {
    if (this.owned) this.setAlarm();
    if (this.scheduled || this.owned) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      this.turn();
    });
  }

  private readonly turn = (): void => {
    this.expire();
    if (this.owned || (this.jobs.length === 0 && this.claims.length === 0)) return;
    try {
      const session = this.session();
      if (session.inTransaction) {
        this.host.whenOver(this.turn);
        this.setAlarm();
        return;
      }
      session.withoutWaiting(() => this.work(session));
      this.retryAfterMs = FIRST_RETRY_MS;
    } catch (error) {
      this.conflicts.count(error);
      if (error instanceof DatabaseFailure && error.verdict === 'conflict') this.tryLater();
      else this.failAll(error);
      return;
    }
    if (this.jobs.length > 0 || this.claims.length > 0) this.schedule();
  };

  /** Commits one group and, when the line is empty then, gives the connection away. @throws DatabaseFailure with nothing lost from the line */
  private work(session: SqliteSession): void {
    const group = this.jobs.slice(0, MAX_GROUP);
    if (group.length > 0) {
      const outcomes = this.commitTogether(session, group);
      if (outcomes === SPOILED) {
        this.commitOneByOne(session, group);
      } else {
        this.jobs.splice(0, group.length);
        settle(group, outcomes);
      }
    }
    const claim = this.jobs.length === 0 ? this.claims[0] : undefined;
    if (claim) this.giveAway(session, claim);
  }

  private commitTogether(session: SqliteSession, group: readonly Job[]): Outcome[] | typeof SPOILED {
    session.control('BEGIN IMMEDIATE');
    try {
      const outcomes: Outcome[] = [];
      for (const job of group) {
        const outcome = attempt(session, job);
        if (outcome === SPOILED) return SPOILED;
        outcomes.push(outcome);
      }
      session.control('COMMIT');
      return outcomes;
    } catch (error) {
      // COMMIT failed: busy readers of a rollback journal, a full disk. Alone, some may still pass.
      if (error instanceof DatabaseFailure && error.verdict !== 'conflict') return SPOILED;
      throw error;
    } finally {
      session.rollback();
    }
  }

  private commitOneByOne(session: SqliteSession, group: readonly Job[]): void {
    for (const job of group) {
      session.control('BEGIN IMMEDIATE');
      let outcome: Outcome;
      try {
        outcome = { value: job.work(session) };
        session.control('COMMIT');
      } catch (error) {
        if (error instanceof DatabaseFailure && error.verdict === 'conflict') throw error;
        outcome = { error };
      } finally {
        session.rollback();
      }
      this.jobs.shift();
      settle([job], [outcome]);
    }
  }

  private giveAway(session: SqliteSession, claim: Job): void {
    try {
      const value = claim.work(session);
      this.claims.shift();
      settle([claim], [{ value }]);
    } catch (error) {
      if (error instanceof DatabaseFailure && error.verdict === 'conflict') throw error;
      this.claims.shift();
      settle([claim], [{ error }]);
    }
  }

  private owning(): () => void {
    this.owned = true;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.owned = false;
      this.schedule();
    };
  }

  private tryLater(): void {
    if (this.retry) return;
    const waitMs = this.retryAfterMs * (0.5 + Math.random());
    this.retryAfterMs = Math.min(this.retryAfterMs * 2, LAST_RETRY_MS);
    this.retry = setTimeout(() => {
      this.retry = undefined;
      this.turn();
    }, waitMs);
  }

  /** While the line stands still, somebody has to tell those who waited too long. */
  private setAlarm(): void {
    const [oldest] = [...this.jobs.slice(0, 1), ...this.claims.slice(0, 1)].sort((a, b) => a.deadline - b.deadline);
    if (this.alarm || !oldest) return;
    this.alarm = setTimeout(
      () => {
        this.alarm = undefined;
        this.expire();
        this.setAlarm();
      },
      Math.max(1, oldest.deadline - performance.now() + 1),
    );
  }

  private expire(): void {
    const now = performance.now();
    const isLate = (job: Job): boolean => job.deadline <= now;
    if (!this.jobs.some(isLate) && !this.claims.some(isLate)) return;
    const late = [...this.jobs.filter(isLate), ...this.claims.filter(isLate)];
    this.jobs = this.jobs.filter((job) => !isLate(job));
    this.claims.splice(0, this.claims.length, ...this.claims.filter((job) => !isLate(job)));
    for (const job of late) {
      job.reject(
        new StoreUnavailableError(
          `SQLite could not ${job.doing} within ${this.timeoutMs} ms: its one connection was in a transaction of the host, or another process held the file's write lock, all the time. ` +
            'Keep host transactions short, and inside one pass `{ transaction }` instead of waiting for the store.',
        ),
      );
    }
  }

  private failAll(error: unknown): void {
    for (const job of [...this.jobs.splice(0), ...this.claims.splice(0)]) job.reject(forCaller(error, job.doing));
  }
}

/** A job that failed before it wrote anything is refused alone; its neighbours go on. */
function attempt(session: SqliteSession, job: Job): Outcome | typeof SPOILED {
  const before = session.writes;
  try {
    return { value: job.work(session) };
  } catch (error) {
    return error instanceof DatabaseFailure || session.writes !== before ? SPOILED : { error };
  }
}

function settle(group: readonly Job[], outcomes: readonly Outcome[]): void {
  for (let index = 0; index < group.length; index += 1) {
    const job = group[index] as Job;
    const outcome = outcomes[index] as Outcome;
    if ('error' in outcome) job.reject(forCaller(outcome.error, job.doing));
    else job.resolve(outcome.value as never);
  }
}
