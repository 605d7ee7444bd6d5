import type { JournalEntry } from '../contracts/journal-entry.js';
import {
  RunStore,
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
  type StoreMetrics,
  type StoreTraits,
  type ToolTransaction,
  type TransitionDecision,
  type TransitionRequest,
  type TransitionResult,
  type WorkerBeat,
  type WorkerRecord,
} from '../contracts/ports/run-store.port.js';
import type { Interaction } from '../contracts/interaction.js';
import type { SequencedEntry } from '../contracts/journal-entry.js';
import type { RunRecord, RunSummary, SessionRecord } from '../contracts/run.js';

/** One change of a run, as it is about to be or has just been committed. Heartbeats and the schema are none. */
export interface StoreCommit {
  /** From 1, in the order in which the commits were begun at this store object, over all runs. */
  readonly number: number;
  /** The call it belongs to; `tool` is the transaction of a `transactional` tool. */
  readonly kind: 'create' | 'append' | 'transition' | 'tool';
  /** Id of the run. */
  readonly runId: string;
  /** What it appends to the run's journal; empty for a flag or a message that only waits for its run. */
  readonly entries: readonly JournalEntry[];
}

/** What is called before and after each commit of a {@link CrashExplorer}. */
export interface CommitHooks {
  /**
   * Nothing of it is durable. For `create` and `transition` the store's transaction is open, for `tool` also the tool's own rows are in it. Synchronous;
   * called once, even if the store repeats the transaction. What it throws fails the call, with nothing written.
   */
  before?(commit: StoreCommit): unknown;
  /** It is durable, and nobody has been told. What it throws is an answer that got lost. */
  after?(commit: StoreCommit): unknown;
}

/**
 * Any store, with a word before and after each of its commits: for tests that end the process exactly there, or make exactly that commit fail, and see
 * whether everything is found right afterwards. It changes nothing about the store behind it and keeps its whole contract.
 *
 *     new CrashExplorer(store, { before: ({ number }) => number === 7 && process.kill(process.pid, 'SIGKILL') })
 */
export class CrashExplorer extends RunStore {
  private begun = 0;

  constructor(
    private readonly inner: RunStore,
    private readonly hooks: CommitHooks,
  ) {
    super();
  }

  get traits(): StoreTraits {
    return this.inner.traits;
  }

  /** Commits begun so far. */
  get commits(): number {
    return this.begun;
  }

  async create(request: CreateRequest): Promise<CreateResult> {
    const watch = this.watch('create', request.runId);
    const result = await this.inner.create({
      ...request,
      decide: (situation) => {
        const decision = request.decide(situation);
        if (decision.do === 'insert') watch.before(decision.entries);
        else watch.withdraw();
        return decision;
      },
      // In a transaction of the host this is the commit, long after the answer.
      onVisible: () => {
        watch.after();
        request.onVisible?.();
      },
    });
    if (request.transaction === undefined) watch.after();
    return result;
  }

  async append(request: AppendRequest): Promise<void> {
    const watch = this.watch('append', request.runId);
    watch.before(request.entries);
    await this.inner.append(request);
    watch.after();
  }

  async transition<T>(request: TransitionRequest<T>): Promise<TransitionResult<T>> {
    const watch = this.watch('transition', request.runId);
    const result = await this.inner.transition<T>({
      ...request,
      decide: (locked) => {
        const decision = request.decide(locked);
        if (writes(decision)) watch.before(decision.run?.entries ?? []);
        else watch.withdraw();
        return decision;
      },
    });
    watch.after();
    return result;
  }

  openToolTransaction(): ToolTransaction {
    const inner = this.inner.openToolTransaction();
    return {
      begin: () => inner.begin(),
      ...(inner.enter && { enter: <T>(body: () => T): T => (inner.enter as NonNullable<typeof inner.enter>)(body) }),
      commit: async (append) => {
        const watch = this.watch('tool', append.runId);
        watch.before(append.entries);
        await inner.commit(append);
        watch.after();
      },
      rollback: () => inner.rollback(),
      isConflict: (error) => inner.isConflict(error),
    };
  }

  // ---- what commits nothing of a run ----

  open(): Promise<void> {
    return this.inner.open();
  }

  close(): Promise<void> {
    return this.inner.close();
  }

  load(runId: string): Promise<{ run: RunRecord; lease: LeaseView | null } | null> {
    return this.inner.load(runId);
  }

  snapshot(runId: string): Promise<RunAtOneMoment | null> {
    return this.inner.snapshot(runId);
  }

  readJournal(
    runId: string,
    after: number,
    limit: number,
  ): Promise<{ run: RunRecord; entries: SequencedEntry[] } | null> {
    return this.inner.readJournal(runId, after, limit);
  }

  follow(positions: readonly JournalPosition[], limit: number): Promise<JournalNews[]> {
    return this.inner.follow(positions, limit);
  }

  list(query: ListQuery): Promise<Page<RunSummary>> {
    return this.inner.list(query);
  }

  heartbeat(beat: WorkerBeat): Promise<{ now: number; leaseExpiresAt: number }> {
    return this.inner.heartbeat(beat);
  }

  retireWorker(workerId: string): Promise<void> {
    return this.inner.retireWorker(workerId);
  }

  liveWorkers(): Promise<WorkerRecord[]> {
    return this.inner.liveWorkers();
  }

  due(query: DueQuery): Promise<DueAnswer> {
    return this.inner.due(query);
  }

  overdue(query: OverdueQuery): Promise<OverdueAnswer> {
    return this.inner.overdue(query);
  }

  interactions(query: InteractionQuery): Promise<Page<Interaction>> {
    return this.inner.interactions(query);
  }

  session(sessionId: string): Promise<SessionRecord | null> {
    return this.inner.session(sessionId);
  }

  countPending(upTo: number, transaction?: unknown): Promise<number> {
    return this.inner.countPending(upTo, transaction);
  }

  metrics(): Promise<StoreMetrics> {
    return this.inner.metrics();
  }

  /** Tells each side of one commit at most once, and the second only of a commit whose last try wrote something. */
  private watch(kind: StoreCommit['kind'], runId: string): CommitWatch {
    let commit: StoreCommit | null = null;
    let pending = false;
    return {
      before: (entries) => {
        const first = commit === null;
        commit = { number: commit?.number ?? ++this.begun, kind, runId, entries };
        pending = true;
        if (first) this.hooks.before?.(commit);
      },
      withdraw: () => {
        pending = false;
      },
      after: () => {
        if (!pending || !commit) return;
        pending = false;
        this.hooks.after?.(commit);
      },
    };
  }
}

interface CommitWatch {
  before(entries: readonly JournalEntry[]): void;
  withdraw(): void;
  after(): void;
}

function writes({ run, session, nextInSession, interactions, inbox }: TransitionDecision<unknown>): boolean {
  return (
    run !== undefined ||
    session !== undefined ||
    nextInSession !== undefined ||
    (interactions?.length ?? 0) > 0 ||
    (inbox?.length ?? 0) > 0
  );
}
