import { crc32 } from 'node:zlib';
import { decodePayload, encodePayload, fromJson, toJson } from '../codec/payload-codec.js';
import type { TablesChange } from '../in-memory/tables.js';

/**
 * The form of the log: one line a flush, `<crc32, 8 hex> <number> <JSON array of commits>\n`, numbered 1, 2, 3 … The checksum covers the number and the
 * JSON. A line is on disk as a whole or not at all: whatever else is found at the end is the tail that a crash tore, and was never answered for.
 */
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
    commits: fromJson(body.toString('utf8', space + 1)) as unknown[][],
  };
}

function checksum(bytes: Buffer): string {
  return crc32(bytes).toString(16).padStart(CRC_LENGTH, '0');
}

/** The changes of a commit as JSON text and back. Entries go in as the text they are already: nothing is serialised twice on the way to disk. */
export function commitText(changes: readonly TablesChange[]): string {
  return `[${changes.map(changeText).join(',')}]`;
}

function changeText(change: TablesChange): string {
  if (change.kind === 'session') return toJson(change);
  const runId = runOf(change);
  const start = `{"kind":"${change.kind}","runId":${toJson(runId)}`;
  if (change.kind !== 'journal') return `${start},"payload":${encodePayload(runId, change.kind, change)}}`;
  const { entries, ...row } = change.row;
  return `${start},"row":${toJson(row)},"entries":${entries}}`;
}

function runOf(change: Exclude<TablesChange, { kind: 'session' }>): string {
  switch (change.kind) {
    case 'run':
      return change.run.id;
    case 'interaction':
      return change.interaction.runId;
    case 'inbox':
      return change.message.runId;
    default:
      return change.runId;
  }
}

type JournalText = Extract<TablesChange, { kind: 'journal' }> & { entries: unknown };
type PayloadText = { kind: Exclude<TablesChange['kind'], 'session' | 'journal'>; runId: string; payload: unknown };

/** @param value a change as parsed from {@link commitText} */
export function changeOf(value: unknown): TablesChange {
  const change = value as Extract<TablesChange, { kind: 'session' }> | JournalText | PayloadText;
  if (change.kind === 'session') return change;
  const { kind, runId } = change;
  if (kind !== 'journal') return decodePayload(runId, kind, toJson(change.payload)) as TablesChange;
  return { kind, runId, row: { ...change.row, entries: toJson(change.entries) } };
}
