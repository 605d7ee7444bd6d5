import type { SequencedEntry } from '../../contracts/journal-entry.js';
import type { Message } from '../../contracts/message.js';
import type { RunAtOneMoment } from '../../contracts/ports/run-store.port.js';
import type { ScopedCall } from '../../contracts/ports/system.port.js';
import type {
  EventOptions,
  ListOptions,
  PendingInteractionsOptions,
  SessionMessagesOptions,
  StreamOptions,
  WaitOptions,
} from '../../contracts/run-requests.js';
import type {
  AgentDescription,
  BudgetStatus,
  EventPage,
  InteractionView,
  LifecycleRunEvent,
  Run,
  RunEvent,
  RunSnapshot,
  RunSummaryView,
  StreamedEvent,
} from '../../contracts/run-view.js';
import { readRequest, requireId, requireOptions } from '../../contracts/schema.js';
import { InvalidCursorError } from '../../errors/request.errors.js';
import type { EnginePorts } from '../engine-ports.js';
import {
  fullEvent,
  lifecycleEvent,
  presentInteraction,
  presentOperations,
  presentRun,
  presentSummary,
} from '../run-presenter.js';
import type { JournalFold } from '../journal/fold-journal.js';
import { requireRunState, runNotFound } from '../journal/read-whole-journal.js';
import { readInteractionList, readList } from '../requests/read-requests.js';
import { cursorOf, EVENTS, MAX_EVENTS, SESSION_MESSAGES, STREAM, WAIT } from '../requests/request-schemas.js';
import type { RunSignals } from '../run-signals.js';
import { cursorAhead, type RunStreams } from '../run-streams.js';
import type { RunWaits } from '../run-waits.js';
import type { RunWorker } from '../run-worker.js';
import { effectsNote, readHistory } from '../sessions.js';
import type { Unanswered } from '../unanswered.js';
import { countThatFits } from '../values/json-domain.js';
import type { AnswerInteraction } from './answer-interaction.js';
import type { CallerTransition } from './caller-transition.js';
import { foreignSession } from './start-decision.js';
import type { StartRun } from './start-run.js';

/** JSON text of a page of events or interactions, of which it has at least one. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024;
/** How often a waiter looks again for what other processes did. */
const POLL_MS = 500;

/** What the verbs of a caller work with. */
export interface VerbParts {
  ports: EnginePorts;
  fold: JournalFold;
  signals: RunSignals;
  streams: RunStreams;
  unanswered: Unanswered;
  waits: RunWaits;
  worker: RunWorker;
  callers: CallerTransition;
  starting: StartRun;
  answering: AnswerInteraction;
}

/**
 * The reading verbs: what a run is, what it said, what happened to it. Each reads one consistent snapshot and writes
 * nothing.
 */
export abstract class ReadRuns {
  /** @internal */
  constructor(/** @internal */ protected readonly parts: VerbParts) {}

  /** A run as it is now. @throws RunNotFoundError */
  get(runId: string): Promise<Run> {
    return this.parts.unanswered.watch(async () => {
      const { run, lease, interactions } = await this.moment(runId);
      const previous = run.restarts > 0 ? (await this.read(run.id, run.sequence)).state.previousGenerations : [];
      return presentRun(run, lease, interactions, previous);
    });
  }

  /** Newest first; never prompts or results. @throws InvalidCursorError for a cursor that this list did not give */
  async list(options: ListOptions = {}): Promise<{ runs: RunSummaryView[]; nextCursor?: string }> {
    const { items, ...cursor } = await this.parts.ports.store.list(readList(options));
    return { runs: items.map(presentSummary), ...cursor };
  }

  /**
   * Open interactions, from the store. Oldest first, those of one turn in call order.
   * @throws InvalidCursorError for a cursor that this list did not give
   */
  async pendingInteractions(
    options: PendingInteractionsOptions = {},
  ): Promise<{ interactions: InteractionView[]; nextCursor?: string }> {
    const query = readInteractionList(options);
    let page = await this.parts.ports.store.interactions(query);
    const fitting = countThatFits(page.items, [], MAX_PAGE_BYTES);
    // The store gives the cursor behind a page that ends sooner.
    if (fitting < page.items.length) page = await this.parts.ports.store.interactions({ ...query, limit: fitting });
    const { items, ...cursor } = page;
    return { interactions: items.map(presentInteraction), ...cursor };
  }

  /**
   * The run and its operations at one moment; `cursor` is where to read events on.
   * @throws RunNotFoundError, JournalCorruptError
   */
  async snapshot(runId: string): Promise<RunSnapshot> {
    const { run, lease, interactions } = await this.moment(runId);
    // Journals only grow: up to the run's sequence, this one is as it was at that moment.
    const { state } = await this.read(run.id, run.sequence);
    return {
      run: presentRun(run, lease, interactions, state.previousGenerations),
      operations: presentOperations(run, state),
      cursor: run.sequence,
    };
  }

  /** The transcript of this run alone. @throws RunNotFoundError, JournalCorruptError */
  async messages(runId: string): Promise<Message[]> {
    return (await this.read(runId)).state.messages;
  }

  /**
   * The history that the next run of a session would see; empty for an unknown session.
   * @throws ForbiddenError for a session of another owner
   */
  async sessionMessages(sessionId: string, options: SessionMessagesOptions = {}): Promise<Message[]> {
    const { sessionOwner: owner } = readRequest(SESSION_MESSAGES, options);
    const session = await this.parts.ports.store.session(requireId('sessionId', sessionId));
    if (session && owner !== undefined && session.owner !== owner) throw foreignSession(session.id);
    const { fold, ports } = this.parts;
    const history = await readHistory(ports.store, fold, session?.id ?? null, session?.latestCompletedRunId ?? null);
    if (!session) return history.messages;
    const next = { sessionId: session.id, sessionMode: session.mode, sessionOrder: session.lastOrder + 1 };
    const note = await effectsNote(ports.store, fold, next, history);
    return note ? [...history.messages, note] : history.messages;
  }

  /**
   * Resolves when the run is settled or suspended, when the wait ends, or when this process shuts down; then with the
   * state it has. Giving up touches nothing.
   * @throws RunNotFoundError, and TooManyPendingError when a tool that waits for runs would wait as one too many
   */
  async result(runId: string, options: WaitOptions = {}): Promise<Run> {
    const { timeout = Number.POSITIVE_INFINITY, signal } = readRequest(WAIT, options);
    const until = this.parts.ports.clock.elapsed() + timeout;
    return this.parts.waits.during(requireId('runId', runId), (call) => this.untilOver(runId, until, signal, call));
  }

  private async untilOver(
    runId: string,
    until: number,
    signal: AbortSignal | undefined,
    call: ScopedCall | null,
  ): Promise<Run> {
    const stops = [signal, call?.signal].filter((one) => one !== undefined);
    const ends = stops.length > 1 ? AbortSignal.any(stops) : stops[0];
    let isFirst = true;
    for (;;) {
      const leftMs = until - this.parts.ports.clock.elapsed();
      const { moved, stop } = this.parts.signals.listen(runId, Math.min(POLL_MS, leftMs), ends);
      try {
        const run = await this.get(runId);
        const isOver = run.phase === 'settled' || run.phase === 'suspended' || leftMs <= 0;
        if (isOver) return run;
        call?.signal.throwIfAborted();
        if (signal?.aborted || (!call && this.parts.signals.isReleased)) return run;
        if (call && isFirst) await this.parts.worker.executeAwaited(runId, run.status);
        isFirst = false;
        await moved;
      } finally {
        stop();
      }
    }
  }

  /**
   * A page of the journal after a sequence.
   * @throws InvalidCursorError for a cursor ahead of the run, RunNotFoundError, JournalCorruptError
   */
  events(runId: string, options?: EventOptions & { projection?: 'full' }): Promise<EventPage>;
  events(runId: string, options: EventOptions & { projection: 'lifecycle' }): Promise<EventPage<LifecycleRunEvent>>;
  events(runId: string, options?: EventOptions): Promise<EventPage<RunEvent | LifecycleRunEvent>>;
  async events(runId: string, options: EventOptions = {}): Promise<EventPage<RunEvent | LifecycleRunEvent>> {
    requireOptions(options);
    const id = requireId('runId', runId);
    const { after: given, ...page } = options;
    const { limit = MAX_EVENTS, projection } = readRequest(EVENTS, page);
    const after = requireCursor(given);
    const read = await this.parts.ports.store.readJournal(id, after, limit);
    if (!read) throw runNotFound(id);
    if (after > read.run.sequence) throw cursorAhead(id, after, read.run.sequence);
    const events = read.entries.map(eventOf(projection));
    const shown = events.slice(0, countThatFits(events, [], MAX_PAGE_BYTES));
    return { events: shown, nextCursor: read.entries[shown.length - 1]?.sequence ?? after };
  }

  /**
   * Events as they are committed, from `after` on. Ends once the run is settled and its last event was given; stays open
   * while the run waits. Events of other processes arrive within the option `streamPoll`. A slow reader is behind,
   * never buffered. Leaving the loop, or aborting the signal, changes nothing about the run.
   * @throws RunNotFoundError, InvalidCursorError for a cursor ahead of the run, StreamInterruptedError when this process
   * shuts down, StoreUnavailableError: read on after the last event
   */
  stream(runId: string, options?: StreamOptions & { projection?: 'full' }): AsyncIterable<StreamedEvent>;
  stream(
    runId: string,
    options: StreamOptions & { projection: 'lifecycle' },
  ): AsyncIterable<StreamedEvent<LifecycleRunEvent>>;
  stream(runId: string, options?: StreamOptions): AsyncIterable<StreamedEvent<RunEvent | LifecycleRunEvent>>;
  async *stream(
    runId: string,
    options: StreamOptions = {},
  ): AsyncIterable<StreamedEvent<RunEvent | LifecycleRunEvent>> {
    requireOptions(options);
    const { after, ...rest } = options;
    const { projection, signal } = readRequest(STREAM, rest);
    const show = eventOf(projection);
    for await (const entries of this.parts.streams.entries(requireId('runId', runId), requireCursor(after), signal))
      for (const entry of entries) yield { ...show(entry), id: String(entry.sequence) };
  }

  /** What the run may spend and has spent. @throws RunNotFoundError, JournalCorruptError */
  async budgetStatus(runId: string): Promise<BudgetStatus> {
    const { run, state } = await this.read(runId);
    const limit = run.budgetMaxTotalTokens;
    const consumed = run.totals.usage.totalTokens;
    return {
      ...(limit !== null && { maxTotalTokens: limit, remaining: Math.max(0, limit - consumed) }),
      consumed,
      grants: state.grants.map((grant) => ({ ...grant, at: new Date(grant.at) })),
    };
  }

  /** The agents registered in this process, versions in ascending order. */
  definitions(): AgentDescription[] {
    const byName = new Map<string, AgentDescription>();
    for (const agent of this.parts.ports.catalog.all()) {
      const described = byName.get(agent.name) ?? { name: agent.name, versions: [] };
      byName.set(agent.name, described);
      const tools = agent.tools.map(({ name, version, recovery, approval }) => ({ name, version, recovery, approval }));
      described.versions.push({ version: agent.version, hash: agent.hash, tools });
    }
    return [...byName.values()];
  }

  private async moment(runId: string): Promise<RunAtOneMoment> {
    const moment = await this.parts.ports.store.snapshot(requireId('runId', runId));
    if (!moment) throw runNotFound(runId);
    return moment;
  }

  private read(runId: string, upTo?: number): ReturnType<typeof requireRunState> {
    return requireRunState(this.parts.ports.store, this.parts.fold, requireId('runId', runId), upTo);
  }
}

function eventOf(
  projection: EventOptions['projection'] = 'full',
): (entry: SequencedEntry) => RunEvent | LifecycleRunEvent {
  return projection === 'full' ? fullEvent : lifecycleEvent;
}

/** @throws InvalidCursorError */
function requireCursor(given: unknown = 0): number {
  const after = cursorOf(given);
  if (Number.isSafeInteger(after) && (after as number) >= 0) return after as number;
  throw new InvalidCursorError(`The cursor must be a whole number from 0; events have sequences 1, 2, 3 …`);
}
