/**
 * The form of the log: one line a flush, `<crc32, 8 hex> <number> <JSON array of commits>\n`, numbered 1, 2, 3 … The checksum covers the number and the
 * JSON. A line is on disk as a whole or not at all: whatever else is found at the end is the tail that a crash tore, and was never answered for.
 */
import { crc32 } from 'node:zlib';

const SPACE = 0x20;
const CRC_LENGTH = 8;

export interface LogFrame {
  number: number;
  /** Commits as parsed. */
  commits: unknown[][];
}

/** @param commits the JSON text of each commit */
export function encodeFrame(number: number, commits: readonly string[]): Buffer {
  const body = Buffer.from(`${number} [${commits.join(',')}]\n`);
  return Buffer.concat([Buffer.from(`${checksum(body.subarray(0, -1))} `), body]);
}

/** @param line without its line feed. @returns null for anything that was not written by {@link encodeFrame} in one piece */
export function decodeFrame(line: Buffer): LogFrame | null {
  if (line[CRC_LENGTH] !== SPACE) return null;
  const body = line.subarray(CRC_LENGTH + 1);
  if (line.toString('latin1', 0, CRC_LENGTH) !== checksum(body)) return null;
  const space = body.indexOf(SPACE);
  return {
    number: Number(body.toString('latin1', 0, space)),
    commits: JSON.parse(body.toString('utf8', space + 1)) as unknown[][],
  };
}

function checksum(bytes: Buffer): string {
  return crc32(bytes).toString(16).padStart(CRC_LENGTH, '0');
}
