/** Verdicts on what better-sqlite3 throws. https://www.sqlite.org/rescode.html */
import { DatabaseFailure, type FailureVerdict } from '../database-failure.js';

export function sqliteFailure(error: unknown): DatabaseFailure {
  const code = codeOf(error);
  return new DatabaseFailure(verdictOn(code), code);
}

/** Whether an error that host code threw comes from SQLite; TypeORM's QueryFailedError carries the driver's code. */
export function isDriverError(error: unknown): boolean {
  const code = typeof error === 'object' && error !== null ? (error as { code?: unknown }).code : undefined;
  return typeof code === 'string' && code.startsWith('SQLITE_');
}

function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'unknown';
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (typeof code === 'string') return code;
  // better-sqlite3 throws TypeErrors of its own where the connection is closed, or busy with an iterator of the host's.
  if (typeof message === 'string' && message.includes('connection is busy')) return 'SQLITE_BUSY_ITERATOR';
  if (typeof message === 'string' && message.includes('connection is not open')) return 'SQLITE_NOT_OPEN';
  return error instanceof Error ? error.name : 'unknown';
}

function verdictOn(code: string): FailureVerdict {
  if (/^SQLITE_(BUSY|LOCKED)/.test(code)) return 'conflict';
  if (code === 'SQLITE_TOOBIG') return 'too_large';
  if (/^SQLITE_(FULL|IOERR|NOMEM|CANTOPEN|READONLY|INTERRUPT|PROTOCOL|PERM|NOT_OPEN)/.test(code)) return 'unavailable';
  return 'broken';
}
