// Any store with faults on order: calls that fail before they write, answers that are lost after they wrote, calls that are held or never answered.
import type { LeaseView, ToolTransaction } from '../../lib/contracts/ports/run-store.port.js';
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
  type ListQuery,
  type OverdueAnswer,
  type OverdueQuery,
  type Page,
  type RunAtOneMoment,
  type StoreMetrics,
  type StoreTraits,
  type TransitionRequest,
  type TransitionResult,
  type WorkerBeat,
  type WorkerRecord,
} from '../../lib/contracts/ports/run-store.port.js';
import type { Interaction } from '../../lib/contracts/interaction.js';
import type { SequencedEntry } from '../../lib/contracts/journal-entry.js';
import type { RunRecord, RunSummary, SessionRecord } from '../../lib/contracts/run.js';
import { StoreUnavailableError } from '../../lib/errors/store.errors.js';

export type StoreMethod = Exclude<keyof RunStore, 'traits' | 'open' | 'close' | 'openToolTransaction'>;

export interface Fault {
  /** Default 1; `Infinity` for good, until `heal`. */
  times?: number;
  /** True: the call does its work, and only its answer is lost. Default false. */
  lost?: boolean;
  /** Default: StoreUnavailableError. */
  error?: () => unknown;
  /** Only calls with such a request; default all. */
  when?: (request: never) => boolean;
}

/** A call that waits at a gate. */
export interface Gate {
  /** Resolves when a call has come to the gate. */
  reached: Promise<void>;
  /** Lets it go on. */
  open: () => void;
}

interface Order extends Fault {
  method: StoreMethod;
  left: number;
  gate?: { reached: () => void; opened: Promise<void>; after: boolean };
}

export class FailingStore extends RunStore {
  /** Calls so far, by method, faulty ones included. */
  readonly calls = new Map<StoreMethod, number>();
  private orders: Order[] = [];
  private dead = false;

  constructor(readonly inner: RunStore) {
    super();
  }

  get traits(): StoreTraits {
    return this.inner.traits;
  }

  fail(method: StoreMethod, fault: Fault = {}): void {
    this.orders.push({ ...fault, method, left: fault.times ?? 1 });
  }

  /** Holds the next such call, before its work or, with `after`, between its work and its answer. */
  hold(method: StoreMethod, options: { after?: boolean; when?: Fault['when'] } = {}): Gate {
    let open!: () => void;
    let reached!: () => void;
    const opened = new Promise<void>((resolve) => (open = resolve));
    const arrival = new Promise<void>((resolve) => (reached = resolve));
    const { after = false, when } = options;
    this.orders.push({ method, left: 1, gate: { reached, opened, after }, ...(when && { when }) });
    return { reached: arrival, open };
  }

  /** No more faults, for one method or for all. */
  heal(method?: StoreMethod): void {
    this.orders = method === undefined ? [] : this.orders.filter((order) => order.method !== method);
  }

  /** As after kill -9: what is under way and whatever comes later is never answered, and nothing more is written. */
  kill(): void {
    this.dead = true;
  }

  count(method: StoreMethod): number {
    return this.calls.get(method) ?? 0;
  }

  open(): Promise<void> {
    return this.inner.open();
  }

  close(): Promise<void> {
    return this.inner.close();
  }

  create(request: CreateRequest): Promise<CreateResult> {
    return this.through('create', request, () => this.inner.create(request));
  }

  load(runId: string): Promise<{ run: RunRecord; lease: LeaseView | null } | null> {
    return this.through('load', runId, () => this.inner.load(runId));
  }

  snapshot(runId: string): Promise<RunAtOneMoment | null> {
    return this.through('snapshot', runId, () => this.inner.snapshot(runId));
  }

  readJournal(
    runId: string,
    after: number,
    limit: number,
  ): Promise<{ run: RunRecord; entries: SequencedEntry[] } | null> {
    return this.through('readJournal', runId, () => this.inner.readJournal(runId, after, limit));
  }

  follow(positions: readonly JournalPosition[], limit: number): Promise<JournalNews[]> {
    return this.through('follow', positions, () => this.inner.follow(positions, limit));
  }

  list(query: ListQuery): Promise<Page<RunSummary>> {
    return this.through('list', query, () => this.inner.list(query));
  }

  append(request: AppendRequest): Promise<void> {
    return this.through('append', request, () => this.inner.append(request));
  }

  transition<T>(request: TransitionRequest<T>): Promise<TransitionResult<T>> {
    return this.through('transition', request, () => this.inner.transition(request));
  }

  heartbeat(beat: WorkerBeat): Promise<{ now: number; leaseExpiresAt: number }> {
    return this.through('heartbeat', beat, () => this.inner.heartbeat(beat));
  }

  retireWorker(workerId: string): Promise<void> {
    return this.through('retireWorker', workerId, () => this.inner.retireWorker(workerId));
  }

  liveWorkers(): Promise<WorkerRecord[]> {
    return this.through('liveWorkers', undefined, () => this.inner.liveWorkers());
  }

  due(query: DueQuery): Promise<DueAnswer> {
    return this.through('due', query, () => this.inner.due(query));
  }

  overdue(query: OverdueQuery): Promise<OverdueAnswer> {
    return this.through('overdue', query, () => this.inner.overdue(query));
  }

  interactions(query: InteractionQuery): Promise<Page<Interaction>> {
    return this.through('interactions', query, () => this.inner.interactions(query));
  }

  session(sessionId: string): Promise<SessionRecord | null> {
    return this.through('session', sessionId, () => this.inner.session(sessionId));
  }

  countPending(upTo: number, transaction?: unknown): Promise<number> {
    return this.through('countPending', upTo, () => this.inner.countPending(upTo, transaction));
  }

  metrics(): Promise<StoreMetrics> {
    return this.through('metrics', undefined, () => this.inner.metrics());
  }

  openToolTransaction(): ToolTransaction {
    return this.inner.openToolTransaction();
  }

  private async through<T>(method: StoreMethod, request: unknown, work: () => Promise<T>): Promise<T> {
    this.calls.set(method, this.count(method) + 1);
    if (this.dead) return never();
    const order = this.take(method, request);
    if (order?.gate && !order.gate.after) await this.wait(order.gate);
    if (order && !order.gate && order.lost !== true) throw failure(order, method);
    if (this.dead) return never();
    const answer = await work();
    if (order?.gate?.after === true) await this.wait(order.gate);
    if (order?.lost === true) throw failure(order, method);
    return this.dead ? never() : answer;
  }

  private async wait(gate: NonNullable<Order['gate']>): Promise<void> {
    gate.reached();
    await gate.opened;
  }

  private take(method: StoreMethod, request: unknown): Order | undefined {
    const order = this.orders.find((one) => one.method === method && (one.when?.(request as never) ?? true));
    if (order && --order.left <= 0) this.orders = this.orders.filter((one) => one !== order);
    return order;
  }
}

function failure(order: Order, method: StoreMethod): unknown {
  return order.error?.() ?? new StoreUnavailableError(`The database did not answer (${method}).`);
}

function never<T>(): Promise<T> {
  return new Promise(() => undefined);
}
