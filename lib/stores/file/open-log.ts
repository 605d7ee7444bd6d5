/**
 * Opens the log of a directory: reads it into an image, cuts a torn tail, and writes it anew when most of it is superseded. Compaction happens here only;
 * between two openings the log grows by its commits and by nothing else.
 */
import { open, stat, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { dump } from '../image/image-dump.js';
import type { ImageChange } from '../image/image-change.js';
import type { ImageTables } from '../image/image-tables.js';
import { FILE_MODE, replaceFile, syncDirectory, writeAll } from './atomic-file.js';
import { changeOf, commitText } from './change-text.js';
import { encodeFrame } from './log-frame.js';
import { readLog, type LogEnd } from './log-reader.js';

/** Superseded bytes that make a compaction worth its while: so many, and half of the log. */
const WORTHWHILE = 1024 * 1024;
const FRAME_TEXT = 1024 * 1024;

export interface OpenLog {
  file: FileHandle;
  end: LogEnd;
}

/**
 * @param tables empty; holds what the log says afterwards
 * @throws BrokenStoreError when the log is damaged before its end
 */
export async function openLog(path: string, tables: ImageTables, worthwhile = WORTHWHILE): Promise<OpenLog> {
  const opened = await load(path, tables);
  if (opened.superseded < worthwhile || opened.superseded < opened.end.offset / 2) return opened;
  const compacted = await compact(path, tables).catch(async (error: unknown) => {
    // A disk too full to be tidied is no reason to stay shut, as long as the log is still the old one.
    if (await isSameFile(path, opened.file)) return null;
    await opened.file.close();
    throw error;
  });
  if (compacted === null) return opened;
  await opened.file.close();
  return { file: await openFile(path), end: compacted };
}

async function isSameFile(path: string, file: FileHandle): Promise<boolean> {
  const [named, opened] = await Promise.all([stat(path, { bigint: true }), file.stat({ bigint: true })]);
  return named.ino === opened.ino && named.dev === opened.dev;
}

async function load(path: string, tables: ImageTables): Promise<OpenLog & { superseded: number }> {
  const file = await openFile(path);
  try {
    let superseded = 0;
    const end = await readLog(file, path, ({ commits }) => {
      for (const commit of commits) {
        const changes = commit.map(changeOf);
        for (const change of changes) {
          if (isSuperseding(tables, change)) superseded += JSON.stringify(change).length;
        }
        tables.commit(changes);
      }
    });
    if (end.size > end.offset) await file.truncate(end.offset);
    await file.chmod(FILE_MODE);
    await file.sync();
    await syncDirectory(dirname(path));
    return { file, end, superseded };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Whether a compacted log would hold one row where this one holds two. */
function isSuperseding(tables: ImageTables, change: ImageChange): boolean {
  switch (change.kind) {
    case 'header':
      return true;
    case 'session':
      return tables.sessions.has(change.session.id);
    case 'interaction':
      return tables.interactions.has(change.interaction.id);
    case 'inbox':
      return tables.inboxes.get(change.message.runId)?.has(change.message.requestId) ?? false;
    case 'run':
    case 'journal':
      return false;
  }
}

async function compact(path: string, tables: ImageTables): Promise<LogEnd> {
  let offset = 0;
  let number = 0;
  await replaceFile(path, async (file) => {
    const put = async (commits: readonly string[]) => {
      const frame = encodeFrame(number + 1, commits);
      await writeAll(file, frame, offset);
      offset += frame.length;
      number += 1;
    };
    let commits: string[] = [];
    let size = 0;
    for (const changes of dump(tables)) {
      const text = commitText(changes);
      commits.push(text);
      size += text.length;
      if (size < FRAME_TEXT) continue;
      await put(commits);
      commits = [];
      size = 0;
    }
    if (commits.length > 0) await put(commits);
  });
  return { offset, number, size: offset };
}

/** For reading and writing at a position; made where there is none. Not in append mode, in which Linux ignores positions. */
async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'r+');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return open(path, 'wx+', FILE_MODE);
  }
}
