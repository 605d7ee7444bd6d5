import { type FileHandle, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AgentRunsError } from '../../errors/agent-runs.error.js';
import { fromJson, toJson } from '../codec/payload-codec.js';
import { BrokenStoreError, NewerSchemaError, StoreUnavailableError } from '../../errors/store.errors.js';

/** Files that are there as a whole or not at all: written aside, flushed, renamed into place, the directory flushed. For the owner's eyes only. */
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

/** What a failure of the disk is to callers: passing (I10), with the system's code and never with content. Errors of ours stay what they are. */
export function diskError(what: string, cause: unknown): AgentRunsError {
  if (AgentRunsError.is(cause)) return cause;
  const code = (cause as NodeJS.ErrnoException | null)?.code ?? 'unknown error';
  return new StoreUnavailableError(
    `${what} failed (${code}). Nothing of it counts as committed; see to the disk and try again.`,
    {
      cause,
      details: { code },
    },
  );
}

/**
 * The format version of a directory: a newer one is refused before anything is read or written.
 *
 * Raised whenever an older package could misread what this one writes.
 */
export const FORMAT_VERSION = 1;

const FORMAT_NAME = 'nestjs-agent-runs';

/**
 * Checks the version file, or writes it where there is none.
 * @throws NewerSchemaError, BrokenStoreError when the file is something else
 */
export async function checkFormat(path: string): Promise<void> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (text === null) {
    const content = `${toJson({ format: FORMAT_NAME, version: FORMAT_VERSION })}\n`;
    await replaceFile(path, async (file) => void (await file.writeFile(content)));
    return;
  }
  const version = versionOf(text);
  if (version === null) {
    throw new BrokenStoreError(
      `${path} does not describe a directory of ${FORMAT_NAME}. Give the store a directory of its own.`,
    );
  }
  if (version > FORMAT_VERSION) {
    throw new NewerSchemaError(
      `${path} says format ${version}; this package reads formats up to ${FORMAT_VERSION}. Use the newer package again.`,
      { details: { found: version, supported: FORMAT_VERSION } },
    );
  }
}

function versionOf(text: string): number | null {
  try {
    const { format, version } = fromJson(text) as { format?: unknown; version?: unknown };
    return format === FORMAT_NAME && Number.isSafeInteger(version) && (version as number) > 0
      ? (version as number)
      : null;
  } catch {
    return null;
  }
}
