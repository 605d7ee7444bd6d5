import type { InboxMessage, Interaction } from '../../contracts/interaction.js';
import type { WorkerRecord } from '../../contracts/ports/run-store.port.js';
import { RUN_STATUSES, type RunStatus } from '../../contracts/run-status.js';
import type { RunChange, RunRecord, RunTotals, SessionRecord } from '../../contracts/run.js';

/** One journal row: the entries of one commit. */
export interface JournalRow {
  /** Sequence of the first entry. */
  first: number;
  /** How many entries. */
  count: number;
  attempt: number;
  /** The entries, a JSON array as text. */
  entries: string;
  /** Totals after these entries. */
  totals: RunTotals;
}

/**
 * What a commit changes in the image, as data: the decisions are over, these are their effects. The memory store
 * applies them; the file store also writes them to disk and applies them again when it opens. Values in them are
 * detached already.
 */
export type TablesChange =
  | { kind: 'run'; run: RunRecord }
  | { kind: 'header'; runId: string; change: RunChange & Partial<Pick<RunRecord, 'revision' | 'updatedAt' | 'totals'>> }
  | { kind: 'journal'; runId: string; row: JournalRow }
  | { kind: 'session'; session: SessionRecord }
  | { kind: 'interaction'; interaction: Interaction }
  | { kind: 'inbox'; message: InboxMessage };

/** A commit that is in the image. */
export interface TablesCommit {
  readonly changes: readonly TablesChange[];
  /** Takes it out again. Only ever the newest commit that is still in. */
  undo(): void;
}

/** What a write did: its answer, and its commit unless nothing was written. */
export interface Written<T> {
  value: T;
  commit: TablesCommit | null;
}

/**
 * The tables of a store as Maps, with the indexes that keep a commit's cost independent of how much is stored. Rows are never changed in place: a change
 * puts a new row, so that taking it back is putting the old one. `apply` never throws: whoever plans changes has checked them, which is what makes a list
 * of them atomic in one turn of the event loop.
 */
const EMPTY: ReadonlySet<string> = new Set();

export class InMemoryTables {
  readonly runs = new Map<string, RunRecord>();
  readonly journals = new Map<string, JournalRow[]>();
  readonly sessions = new Map<string, SessionRecord>();
  readonly interactions = new Map<string, Interaction>();
  /** By run, then by request id. */
  readonly inboxes = new Map<string, Map<string, InboxMessage>>();
  /** Belongs to living processes and is no part of any commit. */
  readonly workers = new Map<string, WorkerRecord>();

  journalRows = 0;
  journalBytes = 0;

  private readonly requests = new Map<string, Map<string, string>>();
  private readonly byStatus = new Map<RunStatus, Set<string>>(RUN_STATUSES.map((status) => [status, new Set()]));
  private readonly queuedOfSession = new Map<string, Set<string>>();
  private readonly interactionsOfRun = new Map<string, Set<string>>();
  private readonly pending = new Set<string>();

  /** Applies all changes, or none: it cannot fail half way. */
  commit(changes: readonly TablesChange[]): TablesCommit | null {
    if (changes.length === 0) return null;
    const undos = changes.map((change) => this.apply(change));
    return {
      changes,
      undo: () => {
        for (const undo of undos.reverse()) undo();
      },
    };
  }

  runOfRequest(scope: string, requestId: string): RunRecord | undefined {
    const id = this.requests.get(scope)?.get(requestId);
    return id === undefined ? undefined : this.runs.get(id);
  }

  withStatus(status: RunStatus): RunRecord[] {
    return [...(this.byStatus.get(status) ?? EMPTY)].map((id) => this.runs.get(id) as RunRecord);
  }

  countWithStatus(status: RunStatus): number {
    return this.byStatus.get(status)?.size ?? 0;
  }

  /** The session's queued run with the lowest order, other than the given one. */
  nextQueued(sessionId: string, except: string): RunRecord | null {
    let next: RunRecord | null = null;
    for (const id of this.queuedOfSession.get(sessionId) ?? EMPTY) {
      const run = this.runs.get(id) as RunRecord;
      if (id !== except && (next === null || (run.sessionOrder ?? 0) < (next.sessionOrder ?? 0))) next = run;
    }
    return next;
  }

  interactionsOf(runId: string): Interaction[] {
    return [...(this.interactionsOfRun.get(runId) ?? EMPTY)].map((id) => this.interactions.get(id) as Interaction);
  }

  pendingInteractions(): Interaction[] {
    return [...this.pending].map((id) => this.interactions.get(id) as Interaction);
  }

  countPendingInteractions(): number {
    return this.pending.size;
  }

  private apply(change: TablesChange): () => void {
    switch (change.kind) {
      case 'run':
        return this.insertRun(change.run);
      case 'header': {
        const before = this.runs.get(change.runId) as RunRecord;
        this.putRun({ ...before, ...change.change });
        return () => this.putRun(before);
      }
      case 'journal':
        return this.addJournalRow(change.runId, change.row);
      case 'session':
        return put(this.sessions, change.session.id, change.session);
      case 'interaction':
        return this.putInteraction(change.interaction);
      case 'inbox':
        return put(within(this.inboxes, change.message.runId), change.message.requestId, change.message);
    }
  }

  private insertRun(run: RunRecord): () => void {
    const ofScope = within(this.requests, run.requestScope);
    ofScope.set(run.requestId, run.id);
    this.putRun(run);
    return () => {
      ofScope.delete(run.requestId);
      this.unindex(run);
      this.runs.delete(run.id);
    };
  }

  private putRun(run: RunRecord): void {
    const before = this.runs.get(run.id);
    if (before) this.unindex(before);
    this.runs.set(run.id, run);
    this.byStatus.get(run.status)?.add(run.id);
    if (run.status === 'queued' && run.sessionId !== null) setOf(this.queuedOfSession, run.sessionId).add(run.id);
  }

  private unindex(run: RunRecord): void {
    this.byStatus.get(run.status)?.delete(run.id);
    if (run.status === 'queued' && run.sessionId !== null) leave(this.queuedOfSession, run.sessionId, run.id);
  }

  private addJournalRow(runId: string, row: JournalRow): () => void {
    const before = this.runs.get(runId) as RunRecord;
    const rows = this.journals.get(runId) ?? [];
    const bytes = Buffer.byteLength(row.entries);
    this.journals.set(runId, rows);
    rows.push(row);
    this.runs.set(runId, { ...before, sequence: row.first + row.count - 1, totals: row.totals });
    this.journalRows += 1;
    this.journalBytes += bytes;
    return () => {
      rows.pop();
      if (rows.length === 0) this.journals.delete(runId);
      this.runs.set(runId, before);
      this.journalRows -= 1;
      this.journalBytes -= bytes;
    };
  }

  private putInteraction(interaction: Interaction): () => void {
    const { id, runId } = interaction;
    const before = this.interactions.get(id);
    const index = (row: Interaction | undefined) => {
      if (row?.status === 'pending') this.pending.add(id);
      else this.pending.delete(id);
      if (row) setOf(this.interactionsOfRun, runId).add(id);
      else leave(this.interactionsOfRun, runId, id);
    };
    const undo = put(this.interactions, id, interaction);
    index(interaction);
    return () => {
      undo();
      index(before);
    };
  }
}

function put<K, V>(table: Map<K, V>, key: K, value: V): () => void {
  const before = table.get(key);
  table.set(key, value);
  return () => {
    if (before === undefined) table.delete(key);
    else table.set(key, before);
  };
}

function within<V>(table: Map<string, Map<string, V>>, key: string): Map<string, V> {
  const inner = table.get(key) ?? new Map<string, V>();
  table.set(key, inner);
  return inner;
}

function setOf(index: Map<string, Set<string>>, key: string): Set<string> {
  const ids = index.get(key) ?? new Set<string>();
  index.set(key, ids);
  return ids;
}

function leave(index: Map<string, Set<string>>, key: string, id: string): void {
  const ids = index.get(key);
  ids?.delete(id);
  if (ids?.size === 0) index.delete(key);
}

/** An image as the shortest list of commits that brings it about: what a compacted log holds. Workers are left out: they belong to living processes. */
export function* dump(tables: InMemoryTables): Generator<TablesChange[]> {
  for (const session of tables.sessions.values()) yield [{ kind: 'session', session }];
  for (const run of tables.runs.values()) {
    yield [{ kind: 'run', run }];
    const rows = tables.journals.get(run.id) ?? [];
    for (const row of rows) yield [{ kind: 'journal', runId: run.id, row }];
    // Totals may have moved without an entry since the last row, which has just put its own.
    if (rows.length > 0) yield [{ kind: 'header', runId: run.id, change: { totals: run.totals } }];
  }
  for (const interaction of tables.interactions.values()) yield [{ kind: 'interaction', interaction }];
  for (const inbox of tables.inboxes.values()) {
    for (const message of inbox.values()) yield [{ kind: 'inbox', message }];
  }
}
