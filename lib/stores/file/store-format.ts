/** The format version of a directory: a newer one is refused before anything is read or written. */
import { readFile } from 'node:fs/promises';
import { BrokenStoreError, NewerSchemaError } from '../../errors/store.errors.js';
import { replaceFile } from './atomic-file.js';

/** Raised whenever an older package could misread what this one writes. */
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
    const content = `${JSON.stringify({ format: FORMAT_NAME, version: FORMAT_VERSION })}\n`;
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
    const { format, version } = JSON.parse(text) as { format?: unknown; version?: unknown };
    return format === FORMAT_NAME && Number.isSafeInteger(version) && (version as number) > 0
      ? (version as number)
      : null;
  } catch {
    return null;
  }
}
