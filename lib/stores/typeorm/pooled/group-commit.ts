import type { BatchFailures } from '../database-failure.js';
import type { Deadline } from './connections.js';

/** How long a batch may take before another one is sent beside it. */
const PATIENCE_MS = 100;
/** On their way at once: the next batch is made up while the database commits the first. */
const MAX_BATCHES = 2;
const MAX_JOBS = 128;
/** Characters of text in one statement. */
export const MAX_STATEMENT_SIZE = 1_000_000;

export interface GroupJob {
  /**
   * What it alone may touch while it is on its way, the id of its run first: jobs of a batch, and of batches on their
   * way, have none in common. Empty: it is never part of a batch.
   */
  readonly conflictKeys: readonly string[];
  /** Characters of text that it sends. */
  readonly size: number;
  readonly deadline: Deadline;
}

/** What a transaction gave whose COMMIT was sent and not answered. */
export interface Unanswered<T> {
  readonly value: T;
}

/** What became of a job in a batch. `individually`: it has written nothing, unless its COMMIT was not answered. */
export type BatchOutcome<T> =
  | { readonly value: T }
  | { readonly error: unknown }
  | { readonly individually: true; readonly unanswered?: Unanswered<T> | undefined };

/** A kind of job. */
export interface GroupHooks<J extends GroupJob> {
  /**
   * Runs several jobs, sorted by the ids of their runs, with one commit. It waits for no row that somebody else holds.
   * @returns the outcomes in their order
   * @throws whatever went wrong; nothing is committed then
   */
  runBatched(jobs: readonly J[]): Promise<readonly BatchOutcome<unknown>[]>;
  /** Waits, repeats and fails by itself. */
  runIndividually(job: J, unanswered?: Unanswered<unknown>): Promise<unknown>;
}

interface Member<J> {
  readonly job: J;
  resolve(value: never): void;
  reject(error: unknown): void;
}

/**
 * Group commit on a database with a pool. Jobs that are submitted together go to the database as one batch: one
 * event-loop turn after the first of them, and while batches are on their way everything that has come meanwhile. A job
 * alone waits for no company and uses the statements for one, which are cheaper.
 *
 * A batch does not do what it cannot do at once: a job whose row somebody holds, one that touches what another one
 * touches too, and all jobs of a batch that failed run individually. So batches cannot deadlock with each other, with
 * single transactions, or with heartbeats. A failed batch is counted and reported.
 */
export class GroupCommit<J extends GroupJob> {
  private waiting: Member<J>[] = [];
  private readonly takenKeys = new Set<string>();
  /** Batches that others wait for. */
  private batches = 0;
  /** Batches, and jobs that run individually, on their way. */
  private unsettled = 0;
  private isScheduled = false;

  constructor(
    private readonly hooks: GroupHooks<J>,
    private readonly failures: BatchFailures,
  ) {}

  run<T>(job: J): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const member = { job, resolve, reject };
      if (job.conflictKeys.length === 0) void this.runIndividually(member);
      else this.enqueue(member);
    });
  }

  /** Nothing waits, and nothing is on its way. */
  get isIdle(): boolean {
    return this.waiting.length === 0 && this.unsettled === 0;
  }

  private enqueue(member: Member<J>): void {
    this.waiting.push(member);
    if (this.isScheduled) return;
    this.isScheduled = true;
    setImmediate(() => {
      this.isScheduled = false;
      this.pump();
    });
  }

  private pump(): void {
    while (this.batches < MAX_BATCHES && this.waiting.length > 0) {
      const batch = this.takeBatch();
      if (batch.length > 0) this.dispatch(batch);
    }
  }

  /** In order of arrival. */
  private takeBatch(): Member<J>[] {
    const batch: Member<J>[] = [];
    let size = 0;
    let taken = 0;
    for (const member of this.waiting) {
      const { job } = member;
      if (batch.length === MAX_JOBS || (batch.length > 0 && size + job.size > MAX_STATEMENT_SIZE)) break;
      taken += 1;
      if (job.conflictKeys.some((key) => this.takenKeys.has(key))) {
        void this.runIndividually(member);
        continue;
      }
      batch.push(member);
      size += job.size;
      for (const key of job.conflictKeys) this.takenKeys.add(key);
    }
    this.waiting.splice(0, taken);
    return batch;
  }

  /** A batch that stands still, because somebody holds what it needs, does not keep the next ones waiting. */
  private dispatch(batch: Member<J>[]): void {
    this.unsettled += 1;
    this.batches += 1;
    let isCounted = true;
    const makeRoom = (): void => {
      if (!isCounted) return;
      isCounted = false;
      this.batches -= 1;
      this.pump();
    };
    const timer = setTimeout(makeRoom, PATIENCE_MS);
    void this.send(batch).finally(() => {
      clearTimeout(timer);
      this.unsettled -= 1;
      makeRoom();
    });
  }

  /** Never rejects. */
  private async send(batch: Member<J>[]): Promise<void> {
    if (batch.length === 1) {
      await this.runIndividually(batch[0] as Member<J>);
      this.releaseKeys(batch);
      return;
    }
    batch.sort((a, b) => ((a.job.conflictKeys[0] as string) < (b.job.conflictKeys[0] as string) ? -1 : 1));
    const outcomes = await this.outcomesOf(batch);
    this.releaseKeys(batch);
    for (const [index, member] of batch.entries()) this.settle(member, outcomes[index]);
  }

  private async outcomesOf(batch: readonly Member<J>[]): Promise<readonly BatchOutcome<unknown>[]> {
    try {
      return await this.hooks.runBatched(batch.map(({ job }) => job));
    } catch (error) {
      this.failures.report(error);
      return [];
    }
  }

  private settle(member: Member<J>, outcome: BatchOutcome<unknown> | undefined): void {
    if (outcome === undefined) void this.runIndividually(member);
    // Not awaited: rows that somebody holds must not stall the batches of the others.
    else if ('individually' in outcome) void this.runIndividually(member, outcome.unanswered);
    else if ('value' in outcome) member.resolve(outcome.value as never);
    else member.reject(outcome.error);
  }

  private releaseKeys(batch: readonly Member<J>[]): void {
    for (const { job } of batch) for (const key of job.conflictKeys) this.takenKeys.delete(key);
  }

  /** Never rejects. */
  private async runIndividually({ job, resolve, reject }: Member<J>, unanswered?: Unanswered<unknown>): Promise<void> {
    this.unsettled += 1;
    try {
      resolve((await this.hooks.runIndividually(job, unanswered)) as never);
    } catch (error) {
      reject(error);
    } finally {
      this.unsettled -= 1;
    }
  }
}
