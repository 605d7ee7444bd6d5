/**
 * Reads a log from its beginning to the last whole frame, however large the file is. A torn tail ends the reading; damage with a good frame behind it is
 * no tail, because a frame is only written when the one before it was flushed: that log has lost something it had promised, and is refused.
 */
import type { FileHandle } from 'node:fs/promises';
import { BrokenStoreError } from '../../errors/store.errors.js';
import { decodeFrame, type LogFrame } from './log-frame.js';

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
