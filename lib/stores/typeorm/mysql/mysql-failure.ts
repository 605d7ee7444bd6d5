/** Verdicts on what mysql2 throws. https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html */
import { DatabaseFailure, type FailureVerdict } from '../database-failure.js';

/**
 * Deadlock, lock wait timeout, record changed since read (MariaDB's snapshot isolation), lock not available at once, table definition changed, statement to be
 * prepared again, rolled back by the group during COMMIT.
 */
const CONFLICTS: ReadonlySet<number> = new Set([1213, 1205, 1020, 3572, 1412, 1615, 3101]);
/** The server takes no writes, or the session does not. */
const READ_ONLY: ReadonlySet<number> = new Set([1290, 1792, 1836]);
/** Server gone or shutting down, read only, not ready (Galera), query killed or timed out. */
const PASSING: ReadonlySet<number> = new Set([1053, ...READ_ONLY, 1047, 1317, 1927, 1969, 3024]);
/** Too many connections, of this user too, statements, transactions or locks; blocked host; memory or disk full. */
const EXHAUSTED: ReadonlySet<number> = new Set([
  1040, 1129, 1203, 1226, 1461, 1637, 1206, 1021, 1026, 1037, 1038, 1041, 1114,
]);
/** More than `max_allowed_packet`, also as the value of an expression, or than the redo log has room for. */
const TOO_LARGE: ReadonlySet<number> = new Set([1153, 1162, 1301, 1118]);
/** The server ended the connection, or read or wrote it no longer: https://dev.mysql.com/doc/refman/8.4/en/gone-away.html */
const CONNECTION_ENDED: ReadonlySet<number> = new Set([1053, 1927, 4031, 1152, 1158, 1159, 1160, 1161, 1184]);
/** No such table, no such database, none chosen, no privilege: told of the session, e.g. after `SET ROLE`. */
const OUT_OF_REACH: ReadonlySet<number> = new Set([1044, 1046, 1049, 1142, 1143, 1146, 1227]);
/** The session does not know a prepared statement of ours: a proxy changed the session. */
const UNKNOWN_STATEMENT = 1243;
const LOST = /^(PROTOCOL_|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN)/;

export const DUPLICATE_KEY = 1062;

export function mysqlFailure(error: unknown): DatabaseFailure {
  const { code, errno } = factsOf(error);
  const isLost =
    !TOO_LARGE.has(errno ?? 0) &&
    ((code !== undefined && LOST.test(code)) ||
      CONNECTION_ENDED.has(errno ?? 0) ||
      errno === UNKNOWN_STATEMENT ||
      isFatal(error));
  return new DatabaseFailure(
    verdictOn(errno, isLost, code),
    code ?? (errno === undefined ? 'unknown' : String(errno)),
    isLost,
  );
}

/** Whether an error that host code threw comes from the database; TypeORM's QueryFailedError carries the driver's fields. */
export function isMysqlError(error: unknown): boolean {
  const { code, errno } = factsOf(error);
  return errno !== undefined || (code !== undefined && LOST.test(code)) || isFatal(error);
}

/**
 * Another connection may do what this one does not: the session was changed, or the server has stopped being the primary while it kept its connections.
 */
export function isConnectionUnfit(error: unknown): boolean {
  const { errno = 0 } = factsOf(error);
  return errno === UNKNOWN_STATEMENT || OUT_OF_REACH.has(errno) || READ_ONLY.has(errno);
}

export function isDuplicateKey(error: unknown): boolean {
  return factsOf(error).errno === DUPLICATE_KEY;
}

function verdictOn(errno: number | undefined, isLost: boolean, code: string | undefined): FailureVerdict {
  if (errno !== undefined && CONFLICTS.has(errno)) return 'conflict';
  // Before the loss of the connection, which comes with it.
  if (errno !== undefined && TOO_LARGE.has(errno)) return 'too_large';
  if (errno !== undefined && OUT_OF_REACH.has(errno) && !isLost) return 'out_of_reach';
  if (isLost || errno === undefined || errno < 1000 || PASSING.has(errno) || EXHAUSTED.has(errno)) return 'unavailable';
  return code === 'POOL_CLOSED' ? 'unavailable' : 'broken';
}

/** mysql2 marks what ends a connection, and what is asked of one that has ended, for which it has no code. */
function isFatal(error: unknown): boolean {
  return typeof error === 'object' && error !== null && (error as { fatal?: unknown }).fatal === true;
}

function factsOf(error: unknown): { code: string | undefined; errno: number | undefined } {
  if (typeof error !== 'object' || error === null) return { code: undefined, errno: undefined };
  const { code, errno } = error as { code?: unknown; errno?: unknown };
  return { code: typeof code === 'string' ? code : undefined, errno: typeof errno === 'number' ? errno : undefined };
}
