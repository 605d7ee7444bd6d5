import { mkdtemp, open, readFile, rm, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileRunStore } from '../../../lib/stores/file/file-run.store.js';

type StoreFile = 'commits.log' | 'format.json' | 'lock';

/** A directory for one test, and stores that are closed when it ends. */
export class FileSubject {
  private readonly stores: FileRunStore[] = [];

  private constructor(readonly directory: string) {}

  static async create(): Promise<FileSubject> {
    return new FileSubject(await mkdtemp(join(tmpdir(), 'agent-runs-file-')));
  }

  path(name: StoreFile): string {
    return join(this.directory, name);
  }

  log(): Promise<Buffer> {
    return readFile(this.path('commits.log'));
  }

  /** A store that is not open yet. */
  store(directory = this.directory): FileRunStore {
    const store = new FileRunStore({ directory });
    this.stores.push(store);
    return store;
  }

  async open(directory?: string): Promise<FileRunStore> {
    const store = this.store(directory);
    await store.open();
    return store;
  }

  async dispose(): Promise<void> {
    await Promise.all(this.stores.map((store) => store.close()));
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** What all file handles have in common: where a test stands in for a failing disk. */
export async function fileHandlePrototype(): Promise<FileHandle> {
  const handle = await open(tmpdir(), 'r');
  await handle.close();
  return Object.getPrototypeOf(handle) as FileHandle;
}

export function systemError(code: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: the disk said so`), { code });
}
