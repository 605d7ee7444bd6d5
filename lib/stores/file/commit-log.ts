import type { FileHandle } from 'node:fs/promises';
import type { TablesCommit } from '../in-memory/tables.js';
import { diskError, writeAll } from './disk.js';
import { commitText, encodeFrame } from './log-format.js';
import type { LogEnd } from './open-log.js';

/** Commits beyond this wait for the next frame: a frame is one write and one checksum. */
const FRAME_TEXT = 4 * 1024 * 1024;

interface Pending {
  commit: TablesCommit;
  text: string;
  resolve: () => void;
  reject: (error: Error) => void;
}

/**
 * The log a directory grows by: append, flush, then answer. Commits that arrive while a flush is under way share the next one (group commit); a commit
 * alone waits for nobody. When the disk refuses, every commit that is not flushed is taken out of the image again, newest first, before its caller is
 * told: the image never stands for more than the disk does. The log is written at the offset of the last flushed frame, so what a failed flush may have
 * left behind is cut off before the next one.
 */
export class CommitLog {
  private queue: Pending[] = [];
  private flushing: Promise<void> | null = null;
  private durable: Promise<void> = Promise.resolve();
  private offset: number;
  private number: number;
  /** Whether there may be something behind `offset`. */
  private isDirty = false;

  /** @param beforeWrite throws when this process may not write any more */
  constructor(
    private readonly file: FileHandle,
    private readonly path: string,
    end: LogEnd,
    private readonly beforeWrite: () => void,
  ) {
    this.offset = end.offset;
    this.number = end.number;
  }

  /**
   * Takes a commit that is in the image already.
   * @returns resolved when it is flushed; rejected with a StoreUnavailableError when it is out of the image again
   */
  add(commit: TablesCommit): Promise<void> {
    const text = this.textOf(commit);
    const done = new Promise<void>((resolve, reject) => {
      this.queue.push({ commit, text, resolve, reject });
    });
    // Whoever waits for it is told; nobody has to.
    done.catch(() => undefined);
    this.durable = done;
    // In a microtask: commits of the same turn share the first flush.
    this.flushing ??= Promise.resolve().then(() => this.flush());
    return done;
  }

  /** Resolved when all that is in the image now is flushed; rejected when some of it went out again. */
  settled(): Promise<void> {
    return this.durable;
  }

  /** Flushes what was added and lets the file go. */
  async close(): Promise<void> {
    await this.flushing;
    await this.file.close();
  }

  private textOf(commit: TablesCommit): string {
    try {
      return commitText(commit.changes);
    } catch (cause) {
      // Longer than a text can be. It is the newest commit of the image, so it alone goes out again.
      commit.undo();
      throw diskError(`Serialising a commit for ${this.path}`, cause);
    }
  }

  private async flush(): Promise<void> {
    while (this.queue.length > 0) {
      const batch = this.takeBatch();
      try {
        await this.writeFrame(batch.map(({ text }) => text));
      } catch (cause) {
        await this.takeBack(batch, diskError(`Writing ${this.path}`, cause));
        continue;
      }
      for (const { resolve } of batch) resolve();
    }
    this.flushing = null;
  }

  private takeBatch(): Pending[] {
    let count = 0;
    for (let size = 0; count < this.queue.length && (count === 0 || size < FRAME_TEXT); count += 1) {
      size += this.queue[count]?.text.length ?? 0;
    }
    return this.queue.splice(0, count);
  }

  private async writeFrame(commits: readonly string[]): Promise<void> {
    await this.cutTail();
    this.beforeWrite();
    const frame = encodeFrame(this.number + 1, commits);
    this.isDirty = true;
    await writeAll(this.file, frame, this.offset);
    await this.file.datasync();
    this.isDirty = false;
    this.offset += frame.length;
    this.number += 1;
  }

  private async cutTail(): Promise<void> {
    if (!this.isDirty) return;
    this.beforeWrite();
    await this.file.truncate(this.offset);
    await this.file.datasync();
    this.isDirty = false;
  }

  private async takeBack(batch: readonly Pending[], error: Error): Promise<void> {
    // What came later was decided on top of what failed now: it goes with it.
    const lost = [...batch, ...this.queue.splice(0)];
    for (const { commit } of lost.toReversed()) commit.undo();
    this.durable = Promise.resolve();
    // At once, so that a crash from here on does not bring back what is refused below. If it fails, the next flush begins with it.
    await this.cutTail().catch(() => undefined);
    for (const { reject } of lost) reject(error);
  }
}
