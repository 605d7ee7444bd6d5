import * as queries from './queries.js';
import * as sweeps from './sweeps.js';
import * as writes from './writes.js';
import type { Interaction } from '../../contracts/interaction.js';
import type { SequencedEntry } from '../../contracts/journal-entry.js';
import {
  type AppendRequest,
  type CreateRequest,
  type CreateResult,
  type DueAnswer,
  type DueQuery,
  type InteractionQuery,
  type JournalNews,
  type JournalPosition,
  type LeaseView,
  type ListQuery,
  type OverdueAnswer,
  type OverdueQuery,
  type Page,
  type RunAtOneMoment,
  RunStore,
  type StoreMetrics,
  type StoreTraits,
  type ToolTransaction,
  type TransitionRequest,
  type TransitionResult,
  type WorkerBeat,
  type WorkerRecord,
} from '../../contracts/ports/run-store.port.js';
import type { RunRecord, RunSummary, SessionRecord } from '../../contracts/run.js';
import { InvalidConfigurationError } from '../../errors/configuration.errors.js';
import { detached } from '../codec/payload-codec.js';
import { InMemoryTables, type Written } from './tables.js';

/**
 * The kernel of the stores that keep everything in this process: the whole port over {@link InMemoryTables}, in which one turn of the event loop is a
 * transaction. What a subclass adds is only when an answer may be given: at once (memory), or when all that the answer rests on is on disk (file). So
 * nothing is ever told that could still be lost (I2).
 */
export abstract class InMemoryStore extends RunStore {
  /** @internal */
  protected tables = new InMemoryTables();

  /** @param clock the store's clock, epoch ms */
  protected constructor(
    readonly traits: StoreTraits,
    protected readonly clock: () => number,
  ) {
    super();
  }

  /** @internal Does the work in one turn and answers when it, and all it may have seen, is as durable as this store makes things. */
  protected abstract write<T>(work: () => Written<T>): Promise<T>;
  /** @internal */
  protected abstract read<T>(work: () => T): Promise<T>;

  async create(request: CreateRequest): Promise<CreateResult> {
    if (request.transaction !== undefined) throw this.withoutTransactions('join a transaction of the host');
    const result = await this.write(() => writes.create(this.tables, this.clock(), request));
    if (result.created) request.onVisible?.();
    return result;
  }

  append(request: AppendRequest): Promise<void> {
    return this.write(() => writes.append(this.tables, request));
  }

  transition<T>(request: TransitionRequest<T>): Promise<TransitionResult<T>> {
    return this.write(() => writes.transition(this.tables, this.clock(), request));
  }

  load(runId: string): Promise<{ run: RunRecord; lease: LeaseView | null } | null> {
    return this.read(() => queries.load(this.tables, runId));
  }

  snapshot(runId: string): Promise<RunAtOneMoment | null> {
    return this.read(() => queries.snapshot(this.tables, runId));
  }

  readJournal(
    runId: string,
    after: number,
    limit: number,
  ): Promise<{ run: RunRecord; entries: SequencedEntry[] } | null> {
    return this.read(() => queries.readJournal(this.tables, runId, after, limit));
  }

  follow(positions: readonly JournalPosition[], limit: number): Promise<JournalNews[]> {
    return this.read(() => queries.follow(this.tables, positions, limit));
  }

  list(query: ListQuery): Promise<Page<RunSummary>> {
    return this.read(() => queries.list(this.tables, query));
  }

  interactions(query: InteractionQuery): Promise<Page<Interaction>> {
    return this.read(() => queries.interactions(this.tables, query));
  }

  session(sessionId: string): Promise<SessionRecord | null> {
    return this.read(() => detached(this.tables.sessions.get(sessionId) ?? null));
  }

  countPending(upTo: number): Promise<number> {
    return this.read(() => queries.countPending(this.tables, upTo));
  }

  metrics(): Promise<StoreMetrics> {
    return this.read(() => queries.metrics(this.tables, this.clock()));
  }

  due(query: DueQuery): Promise<DueAnswer> {
    return this.read(() => sweeps.due(this.tables, this.clock(), query));
  }

  overdue(query: OverdueQuery): Promise<OverdueAnswer> {
    return this.read(() => sweeps.overdue(this.tables, this.clock(), query));
  }

  heartbeat(beat: WorkerBeat): Promise<{ now: number; leaseExpiresAt: number }> {
    return this.read(() => sweeps.heartbeat(this.tables, this.clock(), beat));
  }

  retireWorker(workerId: string): Promise<void> {
    return this.read(() => void this.tables.workers.delete(workerId));
  }

  liveWorkers(): Promise<WorkerRecord[]> {
    return this.read(() => sweeps.liveWorkers(this.tables, this.clock()));
  }

  openToolTransaction(): ToolTransaction {
    throw this.withoutTransactions('run a transactional tool');
  }

  private withoutTransactions(what: string): InvalidConfigurationError {
    return new InvalidConfigurationError([
      `The ${this.traits.name} store has no transactions and cannot ${what}. Use the TypeORM store for that.`,
    ]);
  }
}
