import { type FileHandle, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { BrokenStoreError } from '../../errors/store.errors.js';
import { dump, type TablesChange, type InMemoryTables } from '../in-memory/tables.js';
import { FILE_MODE, replaceFile, syncDirectory, writeAll } from './disk.js';
import { toJson } from '../codec/payload-codec.js';
import { changeOf, commitText, decodeFrame, encodeFrame, type LogFrame } from './log-format.js';

/** Superseded bytes that make a compaction worth its while: so many, and half of the log. */
const WORTHWHILE = 1024 * 1024;
const FRAME_TEXT = 1024 * 1024;

export interface OpenLog {
  file: FileHandle;
  end: LogEnd;
}

/**
 * Opens the log of a directory: reads it into an image, cuts a torn tail, and writes it anew when most of it is
 * superseded. Compaction happens here only; between two openings the log grows by its commits and by nothing else.
 *
 * @param tables empty; holds what the log says afterwards
 * @throws BrokenStoreError when the log is damaged before its end
 */
export async function openLog(path: string, tables: InMemoryTables, worthwhile = WORTHWHILE): Promise<OpenLog> {
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

async function load(path: string, tables: InMemoryTables): Promise<OpenLog & { superseded: number }> {
  const file = await openFile(path);
  try {
    let superseded = 0;
    const end = await readLog(file, path, ({ commits }) => {
      for (const commit of commits) {
        const changes = commit.map(changeOf);
        for (const change of changes) {
          if (isSuperseding(tables, change)) superseded += toJson(change).length;
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
function isSuperseding(tables: InMemoryTables, change: TablesChange): boolean {
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

async function compact(path: string, tables: InMemoryTables): Promise<LogEnd> {
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

/**
 * Reads a log from its beginning to the last whole frame, however large the file is. A torn tail ends the reading; damage with a good frame behind it is
 * no tail, because a frame is only written when the one before it was flushed: that log has lost something it had promised, and is refused.
 */
const CHUNK = 1024 * 1024;
const LINE_FEED = 0x0a;

export interface LogEnd {
  /** Bytes up to the end of the last whole frame. */
  offset: number;
  /** Number of the last whole frame; 0 = none. */
  number: number;
  /** Bytes of the file; more than `offset` where a tail was torn. */
  size: number;
}

/** @throws BrokenStoreError when the log is damaged before its end */
export async function readLog(file: FileHandle, path: string, onFrame: (frame: LogFrame) => void): Promise<LogEnd> {
  const end: LogEnd = { offset: 0, number: 0, size: 0 };
  let tornAt: number | null = null;
  for await (const { line, offset, isWhole } of linesOf(file)) {
    end.size = offset + line.length + (isWhole ? 1 : 0);
    const frame = isWhole ? decodeFrame(line) : null;
    if (!frame) {
      tornAt ??= offset;
      continue;
    }
    if (tornAt !== null || frame.number !== end.number + 1) {
      throw damaged(
        path,
        tornAt ?? offset,
        `frame ${end.number + 1} is missing or unreadable, frame ${frame.number} follows`,
      );
    }
    try {
      onFrame(frame);
    } catch (cause) {
      throw damaged(path, offset, `frame ${frame.number} does not fit what stands before it`, cause);
    }
    end.offset = end.size;
    end.number = frame.number;
  }
  return end;
}

async function* linesOf(file: FileHandle): AsyncGenerator<{ line: Buffer; offset: number; isWhole: boolean }> {
  const chunk = Buffer.allocUnsafe(CHUNK);
  let parts: Buffer[] = [];
  let lineAt = 0;
  for (let position = 0; ;) {
    const { bytesRead } = await file.read(chunk, 0, CHUNK, position);
    if (bytesRead === 0) break;
    position += bytesRead;
    let from = 0;
    for (let to = chunk.indexOf(LINE_FEED); to >= 0 && to < bytesRead; to = chunk.indexOf(LINE_FEED, from)) {
      const line = Buffer.concat([...parts, chunk.subarray(from, to)]);
      parts = [];
      yield { line, offset: lineAt, isWhole: true };
      lineAt += line.length + 1;
      from = to + 1;
    }
    if (from < bytesRead) parts.push(Buffer.from(chunk.subarray(from, bytesRead)));
  }
  const rest = Buffer.concat(parts);
  if (rest.length > 0) yield { line: rest, offset: lineAt, isWhole: false };
}

function damaged(path: string, offset: number, what: string, cause?: unknown): BrokenStoreError {
  return new BrokenStoreError(
    `The log ${path} is damaged at byte ${offset}: ${what}. Runs in it cannot be trusted; restore the directory from a backup.`,
    { cause, details: { path, offset } },
  );
}
