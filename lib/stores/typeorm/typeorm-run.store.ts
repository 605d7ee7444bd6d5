import type { DataSource } from 'typeorm';
import { parseTimerDuration } from '../../contracts/duration.js';
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
import { createdMeanwhile, createRun } from './create-run.js';
import { ConflictCounter } from './database-failure.js';
import { databaseOf } from './database-of.js';
import { dueRuns } from './due-runs.js';
import { wasRowCommitted, type Committed, prepareAppend } from './journal-rows.js';
import { listInteractions, listRuns } from './lists.js';
import { isCurrent, migrateSchema, readSchema, refuseToMigrate, SCHEMA_STEPS } from './migrations/migrate-schema.js';
import { overdueRuns } from './overdue-runs.js';
import type { Program } from './program.js';
import { countPending, followJournals, loadRun, readJournal, readMoment, readSession } from './read-runs.js';
import type { ProgramMaker, RunDatabase } from './run-database.js';
import { readMetrics } from './store-metrics.js';
import { transitionRun } from './transition-run.js';
import { beat, liveWorkers, retireWorker } from './workers.js';

/** Options of the store on a host's data source. */
export interface TypeOrmRunStoreOptions {
  /**
   * Create or migrate the tables when the store opens, under a lock of the database. Default: true unless `NODE_ENV` is `production`. When false, tables that
   * are missing or older are an error that says what to run.
   */
  migrate?: boolean;
  /**
   * How long one operation of the store may take in all, in ms: waiting for a connection or for SQLite's turn, and repetitions after conflicts, included.
   * Then it is refused with a StoreUnavailableError. Default 10,000, at most 2^31 - 1; a sixth of the lease is a good
   * value.
   */
  statementTimeoutMs?: number;
  /**
   * Told once of each kind of trouble that the store works around, e.g. that the database refuses statements for several
   * runs. Never content. Default: a warning of the process.
   */
  onWarning?: (message: string) => void;
}

/**
 * The durable store: runs live in the host's own database, on the host's own connection or pool, below the ORM. No entity is registered with the data source,
 * so that its `synchronize` and `migration:generate` never touch our tables. This class only names the groups of the port; what a transaction is
 * on each database is in `sqlite/` and `pooled/`.
 */
export class TypeOrmRunStore extends RunStore {
  private readonly database: RunDatabase;
  private readonly counter: ConflictCounter;
  private readonly migrates: boolean;
  /** Workers of this process that have beaten. */
  private readonly beating = new Set<string>();

  /** @throws InvalidConfigurationError for a database that is not supported, or a `statementTimeoutMs` that is no positive number up to 2^31 - 1 */
  constructor(dataSource: DataSource, options: TypeOrmRunStoreOptions = {}) {
    super();
    this.counter = new ConflictCounter(options.onWarning);
    const timeoutMs = parseTimerDuration(options.statementTimeoutMs ?? 10_000, 'statementTimeoutMs');
    this.database = databaseOf(dataSource, timeoutMs, this.counter);
    this.migrates = options.migrate ?? process.env['NODE_ENV'] !== 'production';
  }

  get traits(): StoreTraits {
    const { dialect, isDurable, maxCommitBytes } = this.database;
    return {
      name: `typeorm:${dialect.type}`,
      durable: isDurable,
      shared: isDurable,
      transactions: true,
      maxCommitBytes,
    };
  }

  async open(): Promise<void> {
    const { database } = this;
    await database.open();
    const { dialect } = database;
    const state = await database.read('read the schema version', () => readSchema(dialect));
    if (isCurrent(state, SCHEMA_STEPS)) return;
    if (!this.migrates) refuseToMigrate(state, SCHEMA_STEPS);
    await database.changeSchema(() => migrateSchema(dialect, SCHEMA_STEPS));
  }

  close(): Promise<void> {
    return this.database.close();
  }

  async create(request: CreateRequest): Promise<CreateResult> {
    const { transaction, onVisible } = request;
    const { dialect } = this.database;
    if (transaction === undefined) {
      const conflictKeys = [request.runId, `${request.requestScope} ${request.requestId}`];
      const result = await this.commit(
        'create a run',
        () => createRun(dialect, request),
        request.sessionId === null ? conflictKeys : undefined,
      );
      if (result.created) onVisible?.();
      return result;
    }
    const { value: result } = await this.database.join('create a run', transaction, {
      program: (races) => createRun(dialect, request, races === 0 ? 'host' : 'host after a race'),
      meanwhile: () => createdMeanwhile(dialect, request),
    });
    if (result.created && onVisible) this.database.afterHostCommit(transaction, result.run.id, onVisible);
    return result;
  }

  append(request: AppendRequest): Promise<void> {
    return this.database.append(prepareAppend(request));
  }

  transition<T>(request: TransitionRequest<T>): Promise<TransitionResult<T>> {
    const { dialect } = this.database;
    const conflictKeys = request.session === true ? undefined : [request.runId];
    return this.commit('change a run', () => transitionRun(dialect, request), conflictKeys);
  }

  load(runId: string): Promise<{ run: RunRecord; lease: LeaseView | null } | null> {
    return this.database.read('load a run', () => loadRun(this.database.dialect, runId));
  }

  snapshot(runId: string): Promise<RunAtOneMoment | null> {
    return this.database.read('read a run', () => readMoment(this.database.dialect, runId));
  }

  readJournal(
    runId: string,
    after: number,
    limit: number,
  ): Promise<{ run: RunRecord; entries: SequencedEntry[] } | null> {
    return this.database.read('read a journal', () => readJournal(this.database.dialect, runId, after, limit));
  }

  follow(positions: readonly JournalPosition[], limit: number): Promise<JournalNews[]> {
    return this.database.read('follow journals', () => followJournals(this.database.dialect, positions, limit));
  }

  list(query: ListQuery): Promise<Page<RunSummary>> {
    return this.database.read('list runs', () => listRuns(this.database.dialect, query));
  }

  interactions(query: InteractionQuery): Promise<Page<Interaction>> {
    return this.database.read('list interactions', () => listInteractions(this.database.dialect, query));
  }

  session(sessionId: string): Promise<SessionRecord | null> {
    return this.database.read('read a session', () => readSession(this.database.dialect, sessionId));
  }

  countPending(upTo: number, transaction?: unknown): Promise<number> {
    const program = () => countPending(this.database.dialect, upTo);
    return transaction === undefined
      ? this.database.read('count pending runs', program)
      : this.database.join('count pending runs', transaction, { program, meanwhile: program });
  }

  metrics(): Promise<StoreMetrics> {
    return this.database.read('read metrics', () => readMetrics(this.database.dialect));
  }

  due(query: DueQuery): Promise<DueAnswer> {
    return this.database.read('look for due runs', () => dueRuns(this.database.dialect, query));
  }

  overdue(query: OverdueQuery): Promise<OverdueAnswer> {
    return this.database.read('look for overdue runs', () => overdueRuns(this.database.dialect, query));
  }

  async heartbeat(workerBeat: WorkerBeat): Promise<{ now: number; leaseExpiresAt: number }> {
    const { workerId } = workerBeat;
    const isFirst = !this.beating.has(workerId);
    const answer = await this.database.write({
      doing: 'renew a lease',
      program: () => beat(this.database.dialect, workerBeat, isFirst),
    });
    this.beating.add(workerId);
    return answer;
  }

  async retireWorker(workerId: string): Promise<void> {
    await this.database.write({
      doing: 'retire a worker',
      program: () => retireWorker(this.database.dialect, workerId),
    });
  }

  liveWorkers(): Promise<WorkerRecord[]> {
    return this.database.read('list workers', () => liveWorkers(this.database.dialect));
  }

  /**
   * How often this process met concurrent transactions since it was started, by the database's code (`ER_LOCK_DEADLOCK`, `40001`, `SQLITE_BUSY` …);
   * `BATCH_FAILED` counts statements or transactions for several runs that were given up and repeated one by one,
   * `LOST_RACE` counts those in which somebody else had taken the same key first. What was met was repeated and reached no caller, unless a
   * STORE_UNAVAILABLE says so. From memory.
   */
  conflicts(): Record<string, number> {
    return this.counter.read();
  }

  openToolTransaction(): ToolTransaction {
    return this.database.openToolTransaction();
  }

  /** @param conflictKeys undefined where a session is involved, whose row others may hold for long */
  private async commit<T>(
    doing: string,
    program: ProgramMaker<Committed<T>>,
    conflictKeys: string[] | undefined,
  ): Promise<T> {
    const { dialect } = this.database;
    const wasCommitted = ({ row }: Committed<T>): Program<boolean> => wasRowCommitted(dialect, row);
    const { value } = await this.database.write({ doing, program, wasCommitted, conflictKeys });
    return value;
  }
}
