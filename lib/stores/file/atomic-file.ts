/** Files that are there as a whole or not at all: written aside, flushed, renamed into place, the directory flushed. For the owner's eyes only. */
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { FileHandle } from 'node:fs/promises';

export const FILE_MODE = 0o600;
export const DIRECTORY_MODE = 0o700;

/** @param fill writes the content; the file is put in place when it has resolved */
export async function replaceFile(path: string, fill: (file: FileHandle) => Promise<void>): Promise<void> {
  const aside = `${path}.new`;
  // One that a crash left behind is not continued.
  await rm(aside, { force: true });
  const file = await open(aside, 'wx', FILE_MODE);
  try {
    await fill(file);
    await file.sync();
    await file.close();
    await rename(aside, path);
  } catch (error) {
    await file.close().catch(() => undefined);
    await rm(aside, { force: true }).catch(() => undefined);
    throw error;
  }
  await syncDirectory(dirname(path));
}

/** Makes names in a directory durable. Windows cannot open directories and does not need it. */
export async function syncDirectory(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** Writes all of it: one `write` may take less than it is given. */
export async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}
