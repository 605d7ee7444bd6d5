import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { InvalidConfigurationError } from '../../errors/configuration.errors.js';
import { StoreUnavailableError } from '../../errors/store.errors.js';
import { InMemoryTables, type Written } from '../in-memory/tables.js';
import { InMemoryStore } from '../in-memory/in-memory-run.store.js';
import { checkFormat, DIRECTORY_MODE, diskError } from './disk.js';
import { CommitLog } from './commit-log.js';
import { DirectoryLock } from './directory-lock.js';
import { openLog } from './open-log.js';

/** What {@link FileRunStore} takes. */
export interface FileRunStoreOptions {
  /** The store's own directory, made (with its parents) where there is none. Relative to the working directory. Not on a network file system. */
  directory: string;
  /** The store's clock, epoch ms. Default: the process clock. */
  clock?: () => number;
}

interface Opened {
  lock: DirectoryLock;
  log: CommitLog;
}

/**
 * A store in one directory for one process: the image of the memory store, and a log on disk that is always ahead of what anybody was told (I2). It holds
 *   lock         who uses the directory (see directory-lock)
 *   format.json  the version of all this
 *   commits.log  every commit since the last compaction
 * Names in it are fixed: no id ever becomes a file name. Files are 0600, a directory it makes is 0700. Workers' leases are not on disk: who opens the
 * directory has it alone, so leases of earlier processes are over by then and their runs can be taken over at once.
 */
export class FileRunStore extends InMemoryStore {
  private readonly directory: string;
  private opened: Promise<Opened> | null = null;
  private log: CommitLog | null = null;

  /** @throws InvalidConfigurationError without a directory */
  constructor(options: FileRunStoreOptions) {
    super({ name: 'file', durable: true, shared: false, transactions: false }, options.clock ?? (() => Date.now()));
    if (typeof options.directory !== 'string' || options.directory.trim() === '') {
      throw new InvalidConfigurationError(['FileRunStore needs `directory`: the path of a directory of its own.']);
    }
    this.directory = resolve(options.directory);
  }

  /** @throws StoreLockedError, NewerSchemaError, BrokenStoreError for a damaged log, StoreUnavailableError for trouble with the disk */
  async open(): Promise<void> {
    const opening = (this.opened ??= this.openDirectory());
    try {
      const { log } = await opening;
      // A close that came meanwhile wins.
      if (this.opened === opening) this.log = log;
    } catch (error) {
      if (this.opened === opening) this.opened = null;
      throw diskError(`Opening ${this.directory}`, error);
    }
  }

  async close(): Promise<void> {
    const opened = this.opened;
    this.opened = null;
    this.log = null;
    // An opening that failed holds nothing.
    const held = await opened?.catch(() => null);
    if (!held) return;
    try {
      await held.log.close();
    } finally {
      held.lock.release();
    }
  }

  /** @internal */
  protected async write<T>(work: () => Written<T>): Promise<T> {
    const log = this.openedLog();
    let written: Written<T>;
    try {
      written = work();
    } catch (refusal) {
      // It may rest on a commit that is not flushed yet: then that one's failure is the answer.
      await log.settled();
      throw refusal;
    }
    await (written.commit ? log.add(written.commit) : log.settled());
    return written.value;
  }

  /** @internal */
  protected async read<T>(work: () => T): Promise<T> {
    const log = this.openedLog();
    for (;;) {
      const value = work();
      try {
        await log.settled();
        return value;
      } catch {
        // What was read is out of the image again; what is there now is on disk.
      }
    }
  }

  private async openDirectory(): Promise<Opened> {
    await mkdir(this.directory, { recursive: true, mode: DIRECTORY_MODE });
    const lock = DirectoryLock.acquire(join(this.directory, 'lock'));
    try {
      await checkFormat(join(this.directory, 'format.json'));
      const path = join(this.directory, 'commits.log');
      const tables = new InMemoryTables();
      const { file, end } = await openLog(path, tables);
      this.tables = tables;
      return { lock, log: new CommitLog(file, path, end, () => lock.assertHeld()) };
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  private openedLog(): CommitLog {
    if (this.log) return this.log;
    throw new StoreUnavailableError(
      `The store in ${this.directory} is not open. Call open() first; close() ends its use.`,
    );
  }
}
