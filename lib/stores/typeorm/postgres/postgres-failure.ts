/** Verdicts on what pg throws. https://www.postgresql.org/docs/current/errcodes-appendix.html */
import { DatabaseFailure, type FailureVerdict } from '../database-failure.js';

/** Serialisation failure, deadlock, lock not available. */
const CONFLICTS: ReadonlySet<string> = new Set(['40001', '40P01', '55P03']);
/** A limit of the program. */
const TOO_LARGE = /^54/;
/**
 * Classes: connection exceptions, logins that are refused (a password that is being changed), insufficient resources, operator intervention, system errors; and
 * a read-only server, and a database that is not there (yet, or for the moment).
 */
const PASSING = /^(08|28|53|57|58)|^(25006|3D000)$/;
/** The server ended the session, also because its transaction was idle or open for too long. */
const SESSION_ENDED = /^(08|57P0)|^25P0[34]$/;
/** A prepared statement that the session does not have, or has although we did not make it: somebody discarded them, or a pooler changed the session. */
const SESSION_CHANGED: ReadonlySet<string> = new Set(['26000', '42P05']);
/** No such table, no such schema, no privilege: told of the session, e.g. after `SET ROLE`. */
const OUT_OF_REACH: ReadonlySet<string> = new Set(['42P01', '3F000', '42501']);
const LOST = /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN)/;
const SQLSTATE = /^[0-9A-Z]{5}$/;

export function postgresFailure(error: unknown): DatabaseFailure {
  const code = codeOf(error);
  const isLost =
    code === undefined
      ? isPgClientError(error)
      : LOST.test(code) || SESSION_ENDED.test(code) || SESSION_CHANGED.has(code);
  return new DatabaseFailure(verdictOn(code, isLost), code ?? (isLost ? 'CONNECTION_LOST' : 'unknown'), isLost);
}

/**
 * Another connection may do what this one does not: the session was changed, or the server has stopped being the primary while it kept its connections.
 */
export function isConnectionUnfit(error: unknown): boolean {
  const code = codeOf(error) ?? '';
  return SESSION_CHANGED.has(code) || OUT_OF_REACH.has(code) || code === '25006';
}

/** Whether an error that host code threw comes from the database; TypeORM's QueryFailedError carries the driver's code. */
export function isPostgresError(error: unknown): boolean {
  const code = codeOf(error);
  return code === undefined ? isPgClientError(error) : SQLSTATE.test(code) || LOST.test(code);
}

function verdictOn(code: string | undefined, isLost: boolean): FailureVerdict {
  if (code !== undefined && CONFLICTS.has(code)) return 'conflict';
  if (code !== undefined && TOO_LARGE.test(code)) return 'too_large';
  if (code !== undefined && OUT_OF_REACH.has(code)) return 'out_of_reach';
  if (isLost || code === undefined || !SQLSTATE.test(code) || PASSING.test(code)) return 'unavailable';
  return 'broken';
}

/**
 * pg gives no code where the connection ended under a query, and TypeORM gives a session back that was ended between two queries of its query runner, and from then
 * on only says so.
 */
function isPgClientError(error: unknown): boolean {
  return (
    error instanceof Error &&
    /^(Connection terminated|Client has encountered a connection error|Client was closed|Query runner already released|timeout exceeded when trying to connect)/.test(
      error.message,
    )
  );
}

function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : undefined;
}
