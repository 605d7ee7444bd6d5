import type { SequencedEntry } from '../contracts/journal-entry.js';
import type { JournalNews } from '../contracts/ports/run-store.port.js';
import { isSettled } from '../contracts/run-status.js';
import { InvalidCursorError } from '../errors/request.errors.js';
import { type JournalCorruptError, StreamInterruptedError } from '../errors/store.errors.js';
import type { EnginePorts } from './engine-ports.js';
import { failureOf } from './failure.js';
import { runNotFound } from './journal/read-whole-journal.js';

/** Entries of a page that a reader behind its run reads. */
const PAGE = 100;
/** Commits that one read brings to all readers together. */
const MAX_COMMITS = 500;

/** A reader that has everything up to `after` and waits for more. */
interface Reader {
  after: number;
  resolve: (news: JournalNews | null) => void;
  reject: (error: unknown) => void;
}

/** A run that this process streams. */
interface StreamedRun {
  /** Streams that are open. */
  streams: number;
  /** Sequence of the last entry that this process committed meanwhile. */
  committed: number;
  readonly waiting: Set<Reader>;
}

/**
 * Streams journals to readers in this process. A reader pulls: it holds a cursor, and only one that has read everything
 * waits. One read serves all that wait, every `streamPollMs` and at once after a commit of this process; without
 * waiting readers there is none. A slow reader is behind, never buffered.
 */
export class RunStreams {
  private readonly runs = new Map<string, StreamedRun>();
  /** Runs that the next read asks for. */
  private readonly due = new Set<string>();
  /** Readers that wait. */
  private waiting = 0;
  private isReading = false;
  private isReleased = false;
  private cancelPoll: (() => void) | null = null;

  constructor(private readonly ports: Pick<EnginePorts, 'store' | 'clock' | 'options'>) {}

  /**
   * Entries after a sequence, in batches, until the run is settled and its last entry was given. Stays open while the
   * run waits.
   * @param signal ends it
   * @throws RunNotFoundError, InvalidCursorError for a cursor ahead of the run, StreamInterruptedError,
   * StoreUnavailableError
   */
  async *entries(runId: string, after: number, signal?: AbortSignal): AsyncGenerator<SequencedEntry[], void> {
    const run = this.opened(runId);
    try {
      let read: Omit<JournalNews, 'runId'> | null = await this.readPage(runId, after);
      for (let cursor = after; read !== null && !signal?.aborted;) {
        if (read.entries.length > 0) yield read.entries;
        if (read.isComplete && isSettled(read.status)) return;
        cursor = read.entries.at(-1)?.sequence ?? cursor;
        read = read.isComplete ? await this.nextOf(run, runId, cursor, signal) : await this.readPage(runId, cursor);
        // A page tells whether that is a gap of the journal, or only of what the readers wait for together.
        if (read?.entries[0]?.sequence !== cursor + 1) read = read && (await this.readPage(runId, cursor));
      }
    } finally {
      this.closed(runId, run);
    }
  }

  /** After a commit of this process: what waits for the run reads at once. */
  committed(runId: string, sequence: number): void {
    const run = this.runs.get(runId);
    if (!run) return;
    run.committed = sequence;
    if (run.waiting.size > 0) this.readNow(runId);
  }

  /** This process is about to end: interrupts the streams that wait, and those that would. */
  release(): void {
    this.isReleased = true;
    for (const [runId, { waiting }] of this.runs)
      for (const { after, reject } of [...waiting]) reject(interrupted(runId, after));
  }

  private async readPage(runId: string, after: number): Promise<Omit<JournalNews, 'runId'>> {
    const page = await this.ports.store.readJournal(runId, after, PAGE);
    if (!page) throw runNotFound(runId);
    const { run, entries } = page;
    if (after > run.sequence) throw cursorAhead(runId, after, run.sequence);
    return { status: run.status, entries, isComplete: after + entries.length >= run.sequence };
  }

  /** @returns null when the signal aborted */
  private nextOf(run: StreamedRun, runId: string, after: number, signal?: AbortSignal): Promise<JournalNews | null> {
    if (this.isReleased) throw interrupted(runId, after);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        if (run.waiting.delete(reader)) this.waiting -= 1;
        signal?.removeEventListener('abort', stop);
        this.poll();
      };
      const stop = (): void => reader.resolve(null);
      const reader: Reader = {
        after,
        resolve: (news) => {
          leave();
          resolve(news);
        },
        reject: (error) => {
          leave();
          reject(error);
        },
      };
      run.waiting.add(reader);
      this.waiting += 1;
      signal?.addEventListener('abort', stop, { once: true });
      if (run.committed > after) this.readNow(runId);
      this.poll();
    });
  }

  /** Keeps one timer while somebody waits. */
  private poll(): void {
    if (this.waiting === 0) {
      this.cancelPoll?.();
      this.cancelPoll = null;
    } else
      this.cancelPoll ??= this.ports.clock.after(this.ports.options.streamPollMs, () => {
        this.cancelPoll = null;
        this.readNow(...this.runs.keys());
        this.poll();
      });
  }

  private readNow(...runIds: string[]): void {
    for (const runId of runIds) this.due.add(runId);
    if (!this.isReading) void this.readDue();
  }

  private async readDue(): Promise<void> {
    this.isReading = true;
    while (this.due.size > 0) {
      const asked = [...this.due].flatMap((runId) => {
        const waiting = [...(this.runs.get(runId)?.waiting ?? [])];
        return waiting.length === 0 ? [] : [{ runId, after: Math.min(...waiting.map(({ after }) => after)) }];
      });
      this.due.clear();
      if (asked.length > 0) await this.ask(asked);
    }
    this.isReading = false;
  }

  private async ask(asked: { runId: string; after: number }[]): Promise<void> {
    try {
      const found = await this.ports.store.follow(asked, MAX_COMMITS);
      for (const news of found) this.give(news);
      // What the limit left out.
      if (found.some(({ isComplete }) => !isComplete)) for (const { runId } of asked) this.due.add(runId);
    } catch (error) {
      // A journal that cannot be read is the trouble of its own readers; the others are read without it.
      const corrupt = failureOf(error) === 'corrupt' ? (error as JournalCorruptError).details.runId : undefined;
      const isTroubled = asked.some(({ runId }) => runId === corrupt)
        ? (runId: string) => runId === corrupt
        : () => true;
      for (const { runId } of asked) {
        if (isTroubled(runId)) for (const { reject } of [...(this.runs.get(runId)?.waiting ?? [])]) reject(error);
        else this.due.add(runId);
      }
    }
  }

  private give(news: JournalNews): void {
    for (const reader of [...(this.runs.get(news.runId)?.waiting ?? [])]) {
      const entries = news.entries.filter(({ sequence }) => sequence > reader.after);
      if (entries.length > 0) reader.resolve({ ...news, entries });
    }
  }

  private opened(runId: string): StreamedRun {
    const run = this.runs.get(runId) ?? { streams: 0, committed: 0, waiting: new Set() };
    run.streams += 1;
    this.runs.set(runId, run);
    return run;
  }

  private closed(runId: string, run: StreamedRun): void {
    run.streams -= 1;
    if (run.streams === 0) this.runs.delete(runId);
  }
}

/** Of a reader that says it has more than there is. */
export function cursorAhead(runId: string, after: number, latest: number): InvalidCursorError {
  return new InvalidCursorError(`The cursor ${after} lies ahead of run ${runId}, whose last event is ${latest}.`, {
    details: { latest },
  });
}

function interrupted(runId: string, after: number): StreamInterruptedError {
  return new StreamInterruptedError(
    `The stream of run ${runId} is interrupted after event ${after}, because this process shuts down. Read on after that event.`,
    { details: { runId, after } },
  );
}
