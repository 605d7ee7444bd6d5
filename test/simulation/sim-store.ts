// The store of one simulated process: each operation is the statements that the TypeORM store sends, in their order, each of them a message that can be late,
// lost on its way there, or lost on its way back. Row locks are held between statements; the decider runs in the process, between them.
import type { Interaction } from '../../lib/contracts/interaction.js';
import type { SequencedEntry } from '../../lib/contracts/journal-entry.js';
import {
  RunStore,
  type AppendRequest,
  type CreateDecision,
  type CreateRequest,
  type CreateResult,
  type CreateSituation,
  type DueAnswer,
  type DueQuery,
  type InteractionQuery,
  type JournalNews,
  type JournalPosition,
  type LeaseView,
  type ListQuery,
  type LockedRun,
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
} from '../../lib/contracts/ports/run-store.port.js';
import type { RunRecord, RunSummary, SessionRecord } from '../../lib/contracts/run.js';
import { InvalidConfigurationError } from '../../lib/errors/configuration.errors.js';
import { StoreConflictError, StoreUnavailableError } from '../../lib/errors/store.errors.js';
import { detached } from '../../lib/stores/codec/payload-codec.js';
import * as queries from '../../lib/stores/in-memory/queries.js';
import * as sweeps from '../../lib/stores/in-memory/sweeps.js';
import * as writes from '../../lib/stores/in-memory/writes.js';
import { PassingFailure, type SimDatabase, type ToolRow, type Transaction } from './sim-database.js';
import type { Port, SimProcess } from './sim-process.js';

/** Somebody committed in between; everything is read and decided again. */
class LostRace extends Error {}

/** Thrown by a decider that only looks. */
class Seen extends Error {}

/** What the database throws into a method whose transaction it gives up. */
export class ToolConflict extends Error {}

/** `context.manager` of a transactional tool. */
export interface SimManager {
  insert(row: ToolRow): void;
}

type Outcome<T> = { value: T } | { error: unknown };

const MAX_TRIES = 5;
const MAX_RACES = 20;
/** How long a client waits for an answer that does not come. */
const GIVES_UP_AFTER_MS = 1_500;

export class SimStore extends RunStore {
  readonly traits: StoreTraits = { name: 'simulated', durable: true, shared: true, transactions: true };

  constructor(
    private readonly database: SimDatabase,
    private readonly process: SimProcess,
  ) {
    super();
    const close = process.onDeath;
    process.onDeath = () => {
      close();
      database.world.at(database.world.time + 2, false, () => database.closeConnectionsOf(process));
    };
  }

  async open(): Promise<void> {}

  async close(): Promise<void> {}

  // ---- create, append, transition ----

  async create(request: CreateRequest): Promise<CreateResult> {
    if (request.transaction !== undefined)
      throw new InvalidConfigurationError(['The simulated store joins no transaction of a host.']);
    const result = await this.changed('create', 'create a run', (transaction) => this.createIn(transaction, request));
    if (result.created) request.onVisible?.();
    return result;
  }

  append(request: AppendRequest): Promise<void> {
    const what = `append ${request.runId}@${request.attempt} from ${request.firstSequence}: ${request.entries.map(({ type }) => type).join(' ')}`;
    return this.changed('append', 'append', (transaction) =>
      this.send('append', what, this.appendAt(transaction, request)),
    );
  }

  transition<T>(request: TransitionRequest<T>): Promise<TransitionResult<T>> {
    return this.changed('transition', 'change a run', (transaction) => this.transitionIn(transaction, request));
  }

  private async createIn(transaction: Transaction, request: CreateRequest): Promise<CreateResult> {
    const { tables } = this.database;
    if (request.sessionId !== null) await this.lock('create', transaction, `session ${request.sessionId}`, false);
    const situation = await this.send<CreateSituation>('create', `read ${request.requestId}`, (answer) => {
      let seen: CreateSituation | undefined;
      look(() =>
        writes.create(tables, this.database.now(), {
          ...request,
          decide: (shown): CreateDecision => {
            seen = shown;
            throw new Seen();
          },
        }),
      );
      answer({ value: seen as CreateSituation });
    });
    const isNew = situation.sameId === null && situation.sameRequest === null;
    const decision = request.decide(situation);
    if (decision.do === 'return') return { run: decision.run, created: false };
    return this.send('create', `commit run ${decision.run.id}`, (answer) => {
      if (transaction.isOver) return answer({ error: new PassingFailure('the connection is closed') });
      answer(
        outcomeOf(() => {
          try {
            const written = writes.create(tables, situation.now, { ...request, decide: () => decision });
            this.database.committed(this.process, 'create', written.commit, new Map([[decision.run.id, undefined]]));
            transaction.landed = written;
            return written.value;
          } catch (error) {
            throw error instanceof StoreConflictError && isNew ? new LostRace() : error;
          } finally {
            this.database.end(transaction);
          }
        }),
      );
    });
  }

  /** One statement with the fence in it; it waits for whoever changes the run. */
  private appendAt(
    transaction: Transaction,
    request: AppendRequest,
    rows: readonly ToolRow[] = [],
  ): (answer: (outcome: Outcome<void>) => void) => void {
    const { database } = this;
    return (answer) =>
      database.lock(transaction, `run ${request.runId}`, (failure) => {
        if (failure) return answer({ error: failure });
        const outcome = outcomeOf(() => {
          const before = new Map([[request.runId, database.tables.runs.get(request.runId)]]);
          const written = writes.append(database.tables, request);
          database.toolRows.push(...rows);
          database.committed(this.process, 'append', written.commit, before);
          return written.value;
        });
        database.end(transaction);
        answer(outcome);
      });
  }

  private async transitionIn<T>(transaction: Transaction, request: TransitionRequest<T>): Promise<TransitionResult<T>> {
    const { tables } = this.database;
    const { runId, skipLocked = false } = request;
    const run = tables.runs.get(runId);
    if (!run) return { outcome: 'not_found' };
    // Which session a run belongs to never changes.
    const sessionId = request.session === true ? run.sessionId : null;
    if (sessionId !== null && !(await this.lock('transition', transaction, `session ${sessionId}`, skipLocked)))
      return { outcome: 'busy' };
    if (!(await this.lock('transition', transaction, `run ${runId}`, skipLocked))) return { outcome: 'busy' };
    const next = sessionId === null ? null : tables.nextQueued(sessionId, runId);
    if (next) await this.lock('transition', transaction, `run ${next.id}`, false);
    const rows = () => [
      tables.runs.get(runId),
      sessionId === null ? undefined : tables.sessions.get(sessionId),
      sessionId === null ? null : tables.nextQueued(sessionId, runId),
    ];
    const { locked, seen } = await this.send<{ locked: LockedRun; seen: unknown[] }>(
      'transition',
      `read ${runId}`,
      (answer) => {
        let locked: LockedRun | undefined;
        look(() =>
          writes.transition<T>(tables, this.database.now(), {
            ...request,
            decide: (shown) => {
              locked = shown;
              throw new Seen();
            },
          }),
        );
        answer(
          (locked?.nextInSession?.id ?? null) === (next?.id ?? null)
            ? { value: { locked: locked as LockedRun, seen: rows() } }
            : { error: new LostRace() },
        );
      },
    );
    const { now } = locked;
    const decision = request.decide(locked);
    return this.send('transition', `commit ${runId}: ${textOf(decision)}`, (answer) => {
      if (transaction.isOver) return answer({ error: new PassingFailure('the connection is closed') });
      answer(
        outcomeOf(() => {
          try {
            if (rows().some((row, index) => row !== seen[index]))
              throw new Error(`a lock on run ${runId} did not hold`);
            const before = new Map([runId, next?.id].map((id) => [id as string, tables.runs.get(id as string)]));
            const written = writes.transition(tables, now, { ...request, decide: () => decision });
            this.database.committed(this.process, 'transition', written.commit, before);
            if (decision.run && decision.run.entries.length > 0) transaction.landed = written;
            return written.value;
          } finally {
            this.database.end(transaction);
          }
        }),
      );
    });
  }

  /** @returns false where the row is held and `skipLocked` */
  private lock(port: Port, transaction: Transaction, row: string, skipLocked: boolean): Promise<boolean> {
    return this.send(port, `lock ${row}`, (answer) => {
      if (skipLocked && this.database.isLocked(row, transaction)) return answer({ value: false });
      this.database.lock(transaction, row, (failure) => answer(failure ? { error: failure } : { value: true }));
    });
  }

  // ---- reads and beats: one statement each ----

  load(runId: string): Promise<{ run: RunRecord; lease: LeaseView | null } | null> {
    return this.read(`load ${runId}`, () => queries.load(this.database.tables, runId));
  }

  snapshot(runId: string): Promise<RunAtOneMoment | null> {
    return this.read(`snapshot ${runId}`, () => queries.snapshot(this.database.tables, runId));
  }

  readJournal(
    runId: string,
    after: number,
    limit: number,
  ): Promise<{ run: RunRecord; entries: SequencedEntry[] } | null> {
    return this.read(`journal ${runId} after ${after}`, () =>
      queries.readJournal(this.database.tables, runId, after, limit),
    );
  }

  follow(positions: readonly JournalPosition[], limit: number): Promise<JournalNews[]> {
    const runs = positions.map(({ runId, after }) => `${runId} after ${after}`).join(', ');
    return this.read(`follow ${runs}`, () => queries.follow(this.database.tables, positions, limit));
  }

  list(query: ListQuery): Promise<Page<RunSummary>> {
    return this.read('list', () => queries.list(this.database.tables, query));
  }

  interactions(query: InteractionQuery): Promise<Page<Interaction>> {
    return this.read('interactions', () => queries.interactions(this.database.tables, query));
  }

  session(sessionId: string): Promise<SessionRecord | null> {
    return this.read(`session ${sessionId}`, () => detached(this.database.tables.sessions.get(sessionId) ?? null));
  }

  countPending(upTo: number): Promise<number> {
    return this.read('count pending', () => queries.countPending(this.database.tables, upTo));
  }

  metrics(): Promise<StoreMetrics> {
    return this.read('metrics', () => queries.metrics(this.database.tables, this.database.now()));
  }

  due(query: DueQuery): Promise<DueAnswer> {
    return this.read('due', () => sweeps.due(this.database.tables, this.database.now(), query));
  }

  overdue(query: OverdueQuery): Promise<OverdueAnswer> {
    return this.read('overdue', () => sweeps.overdue(this.database.tables, this.database.now(), query));
  }

  liveWorkers(): Promise<WorkerRecord[]> {
    return this.read('live workers', () => sweeps.liveWorkers(this.database.tables, this.database.now()));
  }

  heartbeat(beat: WorkerBeat): Promise<{ now: number; leaseExpiresAt: number }> {
    return this.read('heartbeat', () => sweeps.heartbeat(this.database.tables, this.database.now(), beat), 'heartbeat');
  }

  retireWorker(workerId: string): Promise<void> {
    return this.read('retire', () => void this.database.tables.workers.delete(workerId), 'heartbeat');
  }

  private read<T>(what: string, work: () => T, port: Port = 'read'): Promise<T> {
    return this.repeated(what, () => this.send(port, what, (answer) => answer(outcomeOf(work))));
  }

  // ---- transactions of tools ----

  openToolTransaction(): ToolTransaction {
    const { database, process } = this;
    const rows: ToolRow[] = [];
    const transaction = database.begin(process, 'tool');
    const manager: SimManager = {
      insert: (row) => {
        if (transaction.isOver) throw new ToolConflict('the transaction is over');
        rows.push(row);
      },
    };
    const unavailable = (error: unknown): never => {
      throw error instanceof PassingFailure ? new StoreUnavailableError(error.message) : error;
    };
    return {
      begin: async () => {
        await this.send<void>('transaction', 'begin', (answer) => {
          if (database.isolation !== 'single writer') return answer({ value: undefined });
          database.lock(transaction, 'any', (failure) => answer(failure ? { error: failure } : { value: undefined }));
        }).catch(unavailable);
        return manager;
      },
      commit: async (request) => {
        const what = `commit of the tool's transaction, ${request.runId}@${request.attempt} from ${request.firstSequence}`;
        await this.send('transaction', what, this.appendAt(transaction, request, rows)).catch((error: unknown) => {
          if (error instanceof PassingFailure && error.message === 'deadlock')
            throw new StoreConflictError('The simulated database gave the transaction up.');
          return unavailable(error);
        });
      },
      rollback: async () => {
        if (transaction.isOver) return;
        await this.send<void>('transaction', 'rollback', (answer) => {
          database.end(transaction);
          answer({ value: undefined });
        }).catch((error: unknown) => {
          database.end(transaction);
          unavailable(error);
        });
      },
      isConflict: (error) => error instanceof ToolConflict,
    };
  }

  // ---- messages ----

  /**
   * A transaction, repeated on what may pass. One whose COMMIT got no answer is looked up before it is repeated, and again after, as in the TypeORM store:
   * it is known by the journal row that it wrote.
   */
  private changed<T>(port: Port, doing: string, work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const tried: Transaction[] = [];
    const landed = (): Promise<{ value: T } | undefined> =>
      this.send(port, 'look up what landed', (answer) =>
        answer({ value: tried.find((transaction) => transaction.landed)?.landed as { value: T } | undefined }),
      );
    return this.repeated(doing, async () => {
      const before = tried.length > 0 ? await landed() : undefined;
      if (before) return before.value;
      const transaction = this.database.begin(this.process, port);
      tried.push(transaction);
      try {
        return await this.within(transaction, work);
      } catch (error) {
        const after = tried.length > 1 ? await landed() : undefined;
        if (after) return after.value;
        throw error;
      }
    });
  }

  private async within<T>(transaction: Transaction, work: (transaction: Transaction) => Promise<T>): Promise<T> {
    try {
      const result = await work(transaction);
      this.database.end(transaction);
      return result;
    } catch (error) {
      // A message that is still under way meets a closed connection, unless it is the one that commits.
      if (!(error instanceof PassingFailure)) this.database.end(transaction);
      else this.database.world.at(this.database.world.time + 5, false, () => this.database.end(transaction));
      throw error;
    }
  }

  private async send<T>(port: Port, what: string, atServer: (answer: (outcome: Outcome<T>) => void) => void) {
    const fault = await this.process.call(port, what);
    const { database, process } = this;
    const { world } = database;
    return new Promise<T>((resolve, reject) => {
      const lose = (ms: number): void => process.later(ms, () => reject(new PassingFailure('the connection was lost')));
      if (fault?.fault === 'lost') return lose(this.latency());
      if (fault?.fault === 'conflict')
        return process.later(this.latency(), () => reject(new PassingFailure('deadlock')));
      if (fault?.fault === 'late' && fault.ms > GIVES_UP_AFTER_MS) lose(GIVES_UP_AFTER_MS);
      world.at(world.time + this.latency() + (fault?.fault === 'late' ? fault.ms : 0), false, () => {
        if (database.isDown)
          return process.later(this.latency(), () => reject(new PassingFailure('the database is down')));
        atServer((outcome) => {
          world.note(`${process.name} ${what}${'error' in outcome ? ` ! ${nameOf(outcome.error)}` : ''}`);
          if (fault?.fault === 'killed after') return process.kill();
          if (fault?.fault === 'answer lost') return lose(this.latency());
          process.later(this.latency(), () => ('error' in outcome ? reject(outcome.error) : resolve(outcome.value)));
          if (fault?.fault === 'stopped after') process.stop(fault.ms);
        });
      });
    });
  }

  private latency(): number {
    return 1 + Math.floor(this.database.world.random.next() * 4);
  }

  private async repeated<T>(doing: string, once: () => Promise<T>): Promise<T> {
    let races = 0;
    for (let tries = 1; ; tries++) {
      try {
        return await once();
      } catch (error) {
        if (error instanceof LostRace) {
          if (++races < MAX_RACES) continue;
          throw new StoreConflictError(`Others committed first each time the simulated store tried to ${doing}.`);
        }
        if (!(error instanceof PassingFailure)) throw error;
        if (tries >= MAX_TRIES || this.database.world.random.chance(0.3))
          throw new StoreUnavailableError(`The simulated database could not ${doing}: ${error.message}.`);
        await this.process.sleep(5 * 2 ** tries);
      }
    }
  }
}

function look(work: () => unknown): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof Seen)) throw error;
  }
}

function outcomeOf<T>(work: () => T): Outcome<T> {
  try {
    return { value: work() };
  } catch (error) {
    return { error };
  }
}

function nameOf(error: unknown): string {
  return error instanceof Error ? `${error.constructor.name} ${error.message}` : String(error);
}

function textOf({ run, interactions = [], inbox = [] }: TransitionDecision<unknown>): string {
  const types = run?.entries.map(({ type }) => type).join(' ') ?? '';
  return `${run?.change.status ?? '-'} [${types}]${interactions.length > 0 ? ` asks ${interactions.map(({ status }) => status).join(' ')}` : ''}${inbox.length > 0 ? ` inbox ${inbox.length}` : ''}`;
}
