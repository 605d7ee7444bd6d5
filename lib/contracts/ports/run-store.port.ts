import type { Offer } from '../agent-definition.js';
import type { InboxMessage, Interaction, InteractionKind, InteractionStatus } from '../interaction.js';
import type { JournalEntry, SequencedEntry } from '../journal-entry.js';
import type { RunChange, RunMetadata, RunRecord, RunSummary, RunTotals, SessionChange, SessionRecord } from '../run.js';
import type { RunStatus } from '../run-status.js';

/** What a store can do; boot checks depend on it. */
export interface StoreTraits {
  /** For the start-up line, e.g. `typeorm:better-sqlite3`. */
  name: string;
  /** Survives the process. */
  durable: boolean;
  /** Several processes may open it. */
  shared: boolean;
  /** Has {@link RunStore.openToolTransaction}. */
  transactions: boolean;
  /**
   * Bytes of JSON text that the entries of one commit may have, known once it is open; absent = as many as memory
   * allows. Deliveries that are larger together are spread over several commits, and half of it bounds the option
   * `maxPayloadBytes`.
   */
  maxCommitBytes?: number;
}

/** Whose lease it is and until when, by the store's clock. */
export interface LeaseView {
  /** Worker id. */
  owner: string;
  /** Last sign of life, epoch ms; null = the owner's worker row is gone. */
  heartbeatAt: number | null;
  /** Null: the owner's worker row is gone, which is as good as expired. */
  expiresAt: number | null;
}

/** What is shown of a run: one moment of all of it, whatever is being committed meanwhile. */
export interface RunAtOneMoment {
  /** As stored. */
  run: RunRecord;
  /** Null unless it is running. */
  lease: LeaseView | null;
  /** The pending ones, in the order of {@link RunStore.interactions}. */
  interactions: Interaction[];
}

/** A reader of a journal, after the last entry that it has. */
export interface JournalPosition {
  /** Id of the run. */
  runId: string;
  /** Sequence of the last entry of a commit; 0 = before the first. */
  after: number;
}

/** What a journal says after a position, and what the run is then. */
export interface JournalNews {
  /** Id of the run. */
  runId: string;
  /** Of the run, read with its entries. */
  status: RunStatus;
  /** In order and without a gap; at least one. */
  entries: SequencedEntry[];
  /** False: the limit left some out, and the status may belong to one of those. */
  isComplete: boolean;
}

/** What `create` shows its decider, read under the session's lock. */
export interface CreateSituation {
  /** The store's clock, epoch ms. */
  now: number;
  /** The session's row; null without a session id or for a new session. */
  session: SessionRecord | null;
  /** The run that has this (scope, requestId) already. */
  sameRequest: RunRecord | null;
  /** The run that has this id already. */
  sameId: RunRecord | null;
}

/** What `create` does then. */
export type CreateDecision =
  | { do: 'insert'; run: RunRecord; entries: JournalEntry[]; totals: RunTotals; session: SessionRecord | null }
  | { do: 'return'; run: RunRecord };

/**
 * A run that shall be stored. The decider says whether it is, once the store has locked the session and looked for
 * earlier runs.
 */
export interface CreateRequest {
  /** Id of the run. */
  runId: string;
  /** The session that is locked while it is decided; null = none. */
  sessionId: string | null;
  /** Within which `requestId` is unique: `session:<id>`, `agent:<name>` or `run:<id>`. */
  requestScope: string;
  /** The caller's id, else the run's own. */
  requestId: string;
  /**
   * Synchronous and pure; may be called again after a lost race. Throwing refuses: nothing is written, and `create`
   * throws it. `run.sequence`, `run.totals` and `run.revision` of an
   * inserted run are set by the store from `entries` and `totals`.
   */
  decide: (situation: CreateSituation) => CreateDecision;
  /** The host's open transaction, opaque here; the store joins it and does not retry. */
  transaction?: unknown;
  /**
   * Called once a created run is visible to everybody: after our commit, or after the host's outermost one. Not called
   * on its rollback.
   */
  onVisible?: () => void;
}

/** The run that was stored, or that was there already. */
export interface CreateResult {
  /** As it is stored. */
  run: RunRecord;
  /** False: an existing run is returned. */
  created: boolean;
}

/** Entries of the attempt that owns a run. */
export interface AppendRequest {
  /** Id of the run. */
  runId: string;
  /** The attempt that writes; one that no longer owns the run is refused. */
  attempt: number;
  /** Sequence of the first entry; must be last + 1. The identical batch again is a no-op, another one a conflict. */
  firstSequence: number;
  /** At least one, in order. */
  entries: JournalEntry[];
  /** Totals after these entries. */
  totals: RunTotals;
  /**
   * The caller is the only writer of this attempt and knows from the answers to its commits that the last entry is the
   * one before `firstSequence`. A store need not look then: a row that is there after all begins at the same sequence,
   * which a unique key refuses. Default false.
   */
  isNext?: boolean;
}

/** What a transition's decider sees: read after the run's row was locked. */
export interface LockedRun {
  /** The store's clock, epoch ms. */
  now: number;
  /** As stored, under the lock. */
  run: RunRecord;
  /** The owner's lease while `running`; null otherwise. */
  lease: LeaseView | null;
  /** Interactions that are neither `used` nor `cancelled`, in the order of {@link RunStore.interactions}. */
  interactions: Interaction[];
  /**
   * The messages that are still queued, in order; with `TransitionRequest.inboxRequestId` the one of that id alone,
   * whatever became of it.
   */
  inbox: InboxMessage[];
  /** The highest `order` of the messages that were ever sent into the run; 0 = there is none. */
  lastMessageOrder: number;
  /** Only when asked for by `session: true`, and the run has a session; locked before the run. */
  session: SessionRecord | null;
  /** The session's `queued` run with the lowest order, locked too; never the run itself. */
  nextInSession: RunRecord | null;
}

/** A change of a run with the entries that tell of it. */
export interface RunWrite {
  /** Columns that are not named stay. */
  change: RunChange;
  /** Appended to its journal; empty = none. */
  entries: JournalEntry[];
  /** Totals after the entries; omitted = unchanged. */
  totals?: RunTotals;
}

/** What a transition writes, all in one transaction. Every part is optional; an empty one writes nothing. */
export interface RunWrites {
  run?: RunWrite;
  session?: SessionChange;
  nextInSession?: RunWrite;
  /**
   * Inserted or, by id, replaced along a one-way street (I7): a stored `pending` one may become anything; a decided one
   * that is not used yet may only become `used` or `cancelled`, its digest and decision unchanged; a `used` or
   * `cancelled` one stays as it is. Anything else: StoreConflictError, nothing written.
   */
  interactions?: Interaction[];
  /**
   * Inserted or, by request id, replaced while the stored one is `queued`; else StoreConflictError, nothing written.
   */
  inbox?: InboxMessage[];
}

/** What a transition writes, and what it answers its caller. */
export interface TransitionDecision<T> extends RunWrites {
  /** Handed to the caller once all is committed. */
  result: T;
}

/** A change of a run by whoever holds the lock of its row. */
export interface TransitionRequest<T> {
  /** Id of the run. */
  runId: string;
  /** Lock the session before the run and show it. Needed whenever the run may settle. Default false. */
  session?: boolean;
  /**
   * Request id of a message that is being sent: the decider is shown that one, not what is queued, however much that
   * is.
   */
  inboxRequestId?: string;
  /** Do not wait for a row that another transaction holds: `busy` is returned. Default false. */
  skipLocked?: boolean;
  /**
   * Synchronous and pure; may be called again when the transaction is repeated. Throwing refuses: rolled back and
   * rethrown.
   */
  decide: (locked: LockedRun) => TransitionDecision<T>;
}

/**
 * What became of a transition. `busy`: `skipLocked` was given and another transaction holds the run; nothing was
 * written.
 */
export type TransitionResult<T> =
  | { outcome: 'done'; result: T; /** As after the write. */ run: RunRecord }
  | { outcome: 'not_found' }
  | { outcome: 'busy' };

/** What a worker asks with each poll. */
export interface DueQuery {
  /** What the asking worker can execute; empty = nothing claimable is returned. */
  offers: readonly Offer[];
  /** Journal contract version the worker can run: newer runs are left out. */
  contractVersion: number;
  /** At most so many claimable runs; 0 = none wanted. */
  limit: number;
  /** Also runs whose owner's lease expired. */
  takeovers: boolean;
  /** Runs the asking worker executes; their state is reported back. */
  held: readonly string[];
}

/** What others may have done to a run that the asking worker executes. */
export interface HeldRunState {
  /** Id of the run. */
  id: string;
  /** As stored now. */
  status: RunStatus;
  /** The attempt that owns it; another one than the worker's = it was taken over. */
  attempt: number;
  /** Somebody wants it stopped at its next boundary. */
  interruptRequested: boolean;
  /** Messages waiting in the inbox. */
  hasInbox: boolean;
}

/** What a worker may claim, and what became of the runs it holds. */
export interface DueAnswer {
  /** The store's clock, epoch ms. */
  now: number;
  /**
   * Candidates, oldest first: `pending`, due `retry_wait` and, if asked for, expired `running`. A plain read: the claim
   * decides.
   */
  claimable: { id: string; status: RunStatus }[];
  /** Held runs; one that is gone is left out. */
  held: HeldRunState[];
}

/** What a recovery sweep asks. */
export interface OverdueQuery {
  /** What all live workers offer. */
  liveOffers: readonly Offer[];
  /** Journal contract version of the asking process: newer runs are left out. */
  contractVersion: number;
  /**
   * Runs claimable for longer than this, in ms, whose triple is not among `liveOffers`, are `unoffered`. Claimable
   * since: `updatedAt` of a pending run, `nextAttemptAt` of a due one, the lease's end of an expired one (`updatedAt`
   * without a worker row).
   */
  unofferedAfterMs: number;
  /** At most so many of each kind. */
  limit: number;
}

/**
 * Offenders against I11, for the sweeps. Ids only: each is decided again under its lock. Runs of a newer contract are
 * left out of every kind.
 */
export interface OverdueAnswer {
  /** The store's clock, epoch ms. */
  now: number;
  /** `running` with an expired or missing owner. */
  expired: string[];
  /** Claimable (an expired `running` one included), but no live worker can execute it. */
  unoffered: string[];
  /** Open, with a deadline that has passed. */
  pastDeadline: string[];
  /** `waiting` for approvals or questions only, and none of its interactions is pending any more. */
  answered: string[];
  /** Runs with a pending interaction that has expired. */
  expiredInteractions: string[];
}

/** A sign of life of a worker. It renews the lease of all runs the worker holds. */
export interface WorkerBeat {
  /** New for each process. */
  workerId: string;
  /** Ms from the store's now. */
  leaseMs: number;
  /** When the process began, epoch ms. */
  startedAt: number;
  /** What it can execute. */
  offers: readonly Offer[];
}

/** A worker as the store knows it. Times are epoch ms by the store's clock. */
export interface WorkerRecord {
  /** New for each process. */
  id: string;
  /** When the process began. */
  startedAt: number;
  /** Last sign of life. */
  heartbeatAt: number;
  /** When its runs may be taken over. */
  leaseExpiresAt: number;
  /** What it can execute. */
  offers: Offer[];
}

/** What lists of runs and of interactions have in common. */
interface PageQuery {
  sessionId?: string;
  agent?: string;
  /** Id of the actor who started the run, compared exactly. */
  actorId?: string;
  /** Of the listed rows' `createdAt`, in epoch ms: from this moment on. */
  createdSince?: number;
  /** Before this moment. */
  createdBefore?: number;
  /**
   * All of these pairs, on the run. Compared exactly and as text: `5` and `'5'` find each other (a URL has only text),
   * `'A'` and `'a'` do not.
   */
  metadata?: RunMetadata;
  /** Opaque, from an earlier page. @throws InvalidCursorError */
  cursor?: string;
  /** 1-100. */
  limit: number;
}

/** Which runs a list shows; all conditions must hold, an absent one holds always. */
export interface ListQuery extends PageQuery {
  /** Any of these; absent = any status. */
  statuses?: readonly RunStatus[];
}

/** A page of a list. */
export interface Page<T> {
  /** In the order of the list. */
  items: T[];
  /** Absent on the last page. */
  nextCursor?: string;
}

/** Which interactions a list shows; all conditions must hold, an absent one holds always. */
export interface InteractionQuery extends PageQuery {
  /** Any of these; absent = any status. */
  statuses?: readonly InteractionStatus[];
  /** Absent = both. */
  kind?: InteractionKind;
  /** Of this run alone. */
  runId?: string;
  /** Those that only holders of this role may decide. */
  approverRole?: string;
}

/**
 * Counts from bounded queries; no ids, no content. A count may stop at a bound, which is then the figure; of open
 * runs and interactions it must not be below 10,000. Figures of a long journal may be estimates.
 */
export interface StoreMetrics {
  /** Of every status, 0 included. */
  runsByStatus: Record<RunStatus, number>;
  /** How long the oldest claimable run has been claimable, in ms; null = none is. */
  oldestClaimableMs: number | null;
  /** With status `pending`. */
  openInteractions: number;
  /** With a committed result: the sum of `totals.results`. */
  operations: number;
  /** One per commit. */
  journalRows: number;
  /** Of the entries' JSON text. */
  journalBytes: number;
  /** Runs against I11: running without a live lease, or waiting for something already answered. */
  offenders: number;
}

/** A transaction of a `transactional` tool. Exactly one of commit and rollback ends it; both are idempotent. */
export interface ToolTransaction {
  /** Opens it. @returns the revocable handle for `context.manager` */
  begin(): Promise<unknown>;
  /**
   * Runs the tool's method, where given: a store whose transaction blocks its other calls recognises those that come
   * from inside the method, and refuses them at once instead of waiting for itself.
   */
  enter?<T>(body: () => T): T;
  /**
   * Appends under the fence and commits; resolves only when the entries are durable. @throws FencedError,
   * StoreConflictError (run the tool again)
   */
  commit(append: AppendRequest): Promise<void>;
  /**
   * Also while `begin` is still under way: nothing is left behind that it opens.
   * @throws StoreUnavailableError when the database was lost under the method: what the method threw was not its own
   * doing, and it should run again
   */
  rollback(): Promise<void>;
  /**
   * Whether an error that the method threw is a conflict of this database (a deadlock, a serialisation failure), so
   * that the method should run again.
   */
  isConflict(error: unknown): boolean;
}

/**
 * Where runs live. The port is small because the decisions are not in it: the engine decides in pure functions, a store
 * locks, reads, asks, and writes what it was told, in one transaction. Every change of a run is one of three
 * calls: `create` (a new run), `append` (the hot path: entries of a running attempt, fenced by that attempt) and
 * `transition` (everything else).
 *
 * Promises, checked by the contract cases of `./testing`: a transition and its entries are one transaction; sequences
 * have no gap; a stale attempt writes nothing (I3); values are detached copies; ownership is judged by the store's own
 * clock (I12); conflicts of the database are retried inside, never in a host's transaction; a failure that is not the
 * caller's fault is a StoreUnavailableError (retryable) or a BrokenStoreError (final); what is more than a store takes
 * at once is a PayloadTooLargeError, and nothing of it is written.
 *
 * An abstract class, so that it is its own injection token: `{ provide: RunStore, useClass: MyStore }`.
 */
export abstract class RunStore {
  /** May be asked before `open`, but for `maxCommitBytes`. */
  abstract readonly traits: StoreTraits;

  /** Checks or migrates the schema. @throws NewerSchemaError, StoreLockedError */
  abstract open(): Promise<void>;
  /** Flushes and lets go; never closes the host's connection. Idempotent. */
  abstract close(): Promise<void>;

  /**
   * Stores a run, or finds the one that is there: decided under the lock of its session, in one transaction.
   * @throws StoreUnavailableError, and what `decide` throws
   */
  abstract create(request: CreateRequest): Promise<CreateResult>;
  /** Null when there is no such run. `lease` while running. */
  abstract load(runId: string): Promise<{ run: RunRecord; lease: LeaseView | null } | null>;
  /** As `load`, with the run's open interactions: one consistent read. Null when there is no such run. */
  abstract snapshot(runId: string): Promise<RunAtOneMoment | null>;
  /**
   * Entries after a sequence, in order, at most `limit`; stops at a gap. Consistent with itself, and with `run` which
   * is read in the same snapshot. Null when there is no such run. @throws JournalCorruptError
   */
  abstract readJournal(
    runId: string,
    after: number,
    limit: number,
  ): Promise<{ run: RunRecord; entries: SequencedEntry[] } | null>;
  /**
   * What came after each position, by one read for all of them: for a process that streams many runs. A run without
   * anything new, or that is not there, is left out.
   * @param limit commits, of all runs together: what is left out then comes with the next read
   * @throws JournalCorruptError for one of the journals, with its `runId` in the details
   */
  abstract follow(positions: readonly JournalPosition[], limit: number): Promise<JournalNews[]>;
  /**
   * Newest first: by `createdAt`, then id, both descending. @throws InvalidCursorError for a cursor that `list` did not
   * give
   */
  abstract list(query: ListQuery): Promise<Page<RunSummary>>;
  /** @throws FencedError when the attempt no longer owns a running run, SequenceConflictError */
  abstract append(request: AppendRequest): Promise<void>;
  /**
   * @throws IllegalTransitionError when the decision gives a settled run another status that it may not have, see
   * `respectsSettled`
   */
  abstract transition<T>(request: TransitionRequest<T>): Promise<TransitionResult<T>>;
  /**
   * One row per process: writes it, returns the store's clock and the lease's end by it. A worker's first beat also
   * clears rows whose lease ended more than an hour ago.
   */
  abstract heartbeat(beat: WorkerBeat): Promise<{ now: number; leaseExpiresAt: number }>;
  /** Gives up the worker's row; its runs are expired from then on. */
  abstract retireWorker(workerId: string): Promise<void>;
  /** Workers with a live lease. */
  abstract liveWorkers(): Promise<WorkerRecord[]>;
  /** What a poll asks: one plain read. */
  abstract due(query: DueQuery): Promise<DueAnswer>;
  /** What a sweep asks: plain reads. */
  abstract overdue(query: OverdueQuery): Promise<OverdueAnswer>;
  /**
   * Oldest first; those of one moment by run, within a run in call order (`askPlace`), then by id.
   * @throws InvalidCursorError for a cursor that `interactions` did not give
   */
  abstract interactions(query: InteractionQuery): Promise<Page<Interaction>>;
  /** Null when no run was ever started in it. */
  abstract session(sessionId: string): Promise<SessionRecord | null>;
  /**
   * Pending and queued runs, counted up to `upTo`.
   * @param transaction of the host: counted on its connection, so that a holder of one never waits for another
   */
  abstract countPending(upTo: number, transaction?: unknown): Promise<number>;
  /** From bounded queries. */
  abstract metrics(): Promise<StoreMetrics>;
  /** For `transactional` tools. @throws InvalidConfigurationError where `traits.transactions` is false */
  abstract openToolTransaction(): ToolTransaction;
}
