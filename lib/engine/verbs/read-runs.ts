import type { SequencedEntry } from '../../contracts/journal-entry.js';
import type { Message } from '../../contracts/message.js';
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
import { foreignSession } from './start-decision.js';

/** JSON text of a page of events or interactions, of which it has at least one. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024;
/** How often a waiter looks again for what other processes did. */
const POLL_MS = 500;

/**
 * The reading verbs: what a run is, what it said, what happened to it. Each reads one consistent snapshot and writes
 * nothing.
 */
export class ReadRuns {
  constructor(
    private readonly ports: EnginePorts,
    private readonly fold: JournalFold,
    private readonly live: { signals: RunSignals; streams: RunStreams },
    private readonly unanswered: Unanswered,
    private readonly slots: { waits: RunWaits; worker: RunWorker },
  ) {}

  get(runId: string): Promise<Run> {
    return this.unanswered.watch(this.getNow(runId));
  }

  private async getNow(runId: string): Promise<Run> {
    const id = requireId('runId', runId);
    const moment = await this.ports.store.snapshot(id);
    if (!moment) throw runNotFound(id);
    const { run } = moment;
    const previous = run.restarts > 0 ? (await this.read(id, run.sequence)).state.previousGenerations : [];
    return presentRun(run, moment.lease, moment.interactions, previous);
  }

  async list(options: ListOptions = {}): Promise<{ runs: RunSummaryView[]; nextCursor?: string }> {
    const { items, ...cursor } = await this.ports.store.list(readList(options));
    return { runs: items.map(presentSummary), ...cursor };
  }

  async pendingInteractions(
    options: PendingInteractionsOptions = {},
  ): Promise<{ interactions: InteractionView[]; nextCursor?: string }> {
    const query = readInteractionList(options);
    let page = await this.ports.store.interactions(query);
    const fitting = countThatFits(page.items, [], MAX_PAGE_BYTES);
    // The store gives the cursor behind a page that ends sooner.
    if (fitting < page.items.length) page = await this.ports.store.interactions({ ...query, limit: fitting });
    const { items, ...cursor } = page;
    return { interactions: items.map(presentInteraction), ...cursor };
  }

  async snapshot(runId: string): Promise<RunSnapshot> {
    const moment = await this.ports.store.snapshot(requireId('runId', runId));
    if (!moment) throw runNotFound(runId);
    const { run, lease, interactions } = moment;
    // Journals only grow: up to the run's sequence, this one is as it was at that moment.
    const { state } = await this.read(run.id, run.sequence);
    return {
      run: presentRun(run, lease, interactions, state.previousGenerations),
      operations: presentOperations(run, state),
      cursor: run.sequence,
    };
  }

  /** This run's own transcript: the prompt, replies, results. */
  async messages(runId: string): Promise<Message[]> {
    return (await this.read(runId)).state.messages;
  }

  /** What the next run of the session would see. */
  async sessionMessages(sessionId: string, options: SessionMessagesOptions = {}): Promise<Message[]> {
    const { sessionOwner: owner } = readRequest(SESSION_MESSAGES, options);
    const session = await this.ports.store.session(requireId('sessionId', sessionId));
    if (session && owner !== undefined && session.owner !== owner) throw foreignSession(session.id);
    const { store } = this.ports;
    const history = await readHistory(store, this.fold, session?.id ?? null, session?.latestCompletedRunId ?? null);
    if (!session) return history.messages;
    const next = { sessionId: session.id, sessionMode: session.mode, sessionOrder: session.lastOrder + 1 };
    const note = await effectsNote(store, this.fold, next, history);
    return note ? [...history.messages, note] : history.messages;
  }

  /**
   * Resolves when the run is settled or suspended, or when the wait or this process ends: then with the state it has.
   * Inside a run it rejects when the call that waits must stop: the state of that moment would be recorded as what the
   * call came to.
   */
  async result(runId: string, options: WaitOptions = {}): Promise<Run> {
    const { timeout = Number.POSITIVE_INFINITY, signal } = readRequest(WAIT, options);
    const until = this.ports.clock.elapsed() + timeout;
    return this.slots.waits.during(requireId('runId', runId), (call) => this.untilOver(runId, until, signal, call));
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
      const leftMs = until - this.ports.clock.elapsed();
      const { moved, stop } = this.live.signals.listen(runId, Math.min(POLL_MS, leftMs), ends);
      try {
        const run = await this.get(runId);
        const isOver = run.phase === 'settled' || run.phase === 'suspended' || leftMs <= 0;
        if (isOver) return run;
        call?.signal.throwIfAborted();
        if (signal?.aborted || (!call && this.live.signals.isReleased)) return run;
        if (call && isFirst) await this.slots.worker.executeAwaited(runId, run.status);
        isFirst = false;
        await moved;
      } finally {
        stop();
      }
    }
  }

  async events(runId: string, options: EventOptions = {}): Promise<EventPage<RunEvent | LifecycleRunEvent>> {
    requireOptions(options);
    const id = requireId('runId', runId);
    const { after: given, ...page } = options;
    const { limit = MAX_EVENTS, projection } = readRequest(EVENTS, page);
    const after = requireCursor(given);
    const read = await this.ports.store.readJournal(id, after, limit);
    if (!read) throw runNotFound(id);
    if (after > read.run.sequence) throw cursorAhead(id, after, read.run.sequence);
    const events = read.entries.map(eventOf(projection));
    const shown = events.slice(0, countThatFits(events, [], MAX_PAGE_BYTES));
    return { events: shown, nextCursor: read.entries[shown.length - 1]?.sequence ?? after };
  }

  async *stream(
    runId: string,
    options: StreamOptions = {},
  ): AsyncGenerator<StreamedEvent<RunEvent | LifecycleRunEvent>, void> {
    requireOptions(options);
    const { after, ...rest } = options;
    const { projection, signal } = readRequest(STREAM, rest);
    const show = eventOf(projection);
    for await (const entries of this.live.streams.entries(requireId('runId', runId), requireCursor(after), signal))
      for (const entry of entries) yield { ...show(entry), id: String(entry.sequence) };
  }

  private read(runId: string, upTo?: number): ReturnType<typeof requireRunState> {
    return requireRunState(this.ports.store, this.fold, requireId('runId', runId), upTo);
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
