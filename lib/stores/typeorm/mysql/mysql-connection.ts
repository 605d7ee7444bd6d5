import { DatabaseFailure, type FailureVerdict } from '../database-failure.js';
import type { DriverConnection } from '../pooled/pooled-driver.js';
import type { Answer, Row, SqlValue, Statement } from '../program.js';

/** The parts of a mysql2 connection that are used here. */
export interface RawMysqlConnection {
  execute(options: object, callback: (error: unknown, result: unknown) => void): void;
  query(options: object, callback: (error: unknown, result: unknown) => void): void;
  release?(): void;
  destroy(): void;
  on?(event: 'error', listener: () => void): unknown;
  stream?: { destroy(error: Error): void };
}

const guarded = new WeakSet<RawMysqlConnection>();

/** A connection that dies also says so by an event, which would end the process where nobody listens. Its statements have told it already. */
function guard(raw: RawMysqlConnection): void {
  if (guarded.has(raw)) return;
  guarded.add(raw);
  raw.on?.('error', () => undefined);
}

/** Statements of fewer bytes are sent without a question. */
const SMALL_BYTES = 256 * 1024;
/** What a statement has besides its values. */
const OVERHEAD_BYTES = 4 * 1024;

/** By connection, for which it never changes. */
const maxPackets = new WeakMap<RawMysqlConnection, number>();

/** How results are shaped must not depend on what the host has configured for its own. */
const SHAPE = { rowsAsArray: false, nestTables: false, namedPlaceholders: false, typeCast: true };

/**
 * One connection of mysql2 through its callback interface, which is what TypeORM's pool gives. Statements of ours are
 * prepared (`execute`).
 */
export class MysqlConnection implements DriverConnection {
  private isDestroyed = false;

  /** @param isOurs borrowed from the pool by us; one of the host's stays the host's */
  constructor(
    private readonly raw: RawMysqlConnection,
    private readonly isOurs = false,
  ) {
    guard(raw);
  }

  async execute({ sql, params, writes, ignoreTaken }: Statement): Promise<Answer> {
    try {
      await this.refuseTooLarge(params);
      const result = await this.call('execute', { ...SHAPE, sql, values: params.map(asText) });
      if (!writes) return { rows: result as Row[], changes: 0 };
      return { rows: [], changes: (result as { affectedRows: number }).affectedRows };
    } catch (error) {
      if (ignoreTaken && isDuplicateKey(error)) return { rows: [], changes: 0 };
      if (this.isOurs && isConnectionUnfit(error)) this.destroy();
      throw error instanceof DatabaseFailure ? error : mysqlFailure(error);
    }
  }

  async control(sql: string): Promise<void> {
    try {
      // Most of these cannot be prepared.
      await this.call('query', { ...SHAPE, sql });
    } catch (error) {
      throw mysqlFailure(error);
    }
  }

  release(): void {
    if (!this.isDestroyed) this.raw.release?.();
  }

  destroy(): void {
    if (this.isDestroyed) return;
    this.isDestroyed = true;
    // Not a polite end, which a network that swallows everything would never let finish; and with an error, or what runs on it would never hear of it.
    this.raw.stream?.destroy(Object.assign(new Error('The connection was cut.'), { code: 'ECONNABORTED' }));
    this.raw.destroy();
  }

  /** A server ends the connection in the middle of a packet that is too large for it, which looks like any other loss: sent again, it would be so for ever. */
  private async refuseTooLarge(params: readonly SqlValue[]): Promise<void> {
    const bytes = bytesOf(params);
    if (bytes < SMALL_BYTES) return;
    let maxPacket = maxPackets.get(this.raw);
    if (maxPacket === undefined) {
      const rows = (await this.call('query', { ...SHAPE, sql: 'SELECT @@max_allowed_packet AS bytes' })) as Row[];
      maxPacket = Number(rows[0]?.['bytes']);
      maxPackets.set(this.raw, maxPacket);
    }
    if (bytes + OVERHEAD_BYTES > maxPacket) throw new DatabaseFailure('too_large', 'ER_NET_PACKET_TOO_LARGE');
  }

  private call(method: 'execute' | 'query', options: object): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.raw[method](options, (error, result) => {
        if (error) reject(error);
        else resolve(result);
      });
    });
  }
}

/** Counted only where it may matter: a character has at most three bytes, or is two that have four. */
function bytesOf(params: readonly SqlValue[]): number {
  const texts = params.filter((value) => typeof value === 'string');
  const characters = texts.reduce((sum, text) => sum + text.length, 0);
  return characters * 3 < SMALL_BYTES ? characters : texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

/** As text: mysql2 would send a number as a double, which LIMIT refuses and a large integer does not survive everywhere. */
function asText(value: SqlValue): string | null {
  return typeof value === 'number' ? String(value) : value;
}

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

/** Verdicts on what mysql2 throws. https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html */
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
