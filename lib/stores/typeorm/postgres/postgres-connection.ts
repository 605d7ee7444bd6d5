import { createHash } from 'node:crypto';
import { DatabaseFailure, type FailureVerdict } from '../database-failure.js';
import type { DriverConnection } from '../pooled/pooled-driver.js';
import type { Answer, Row, Statement } from '../program.js';

/** The parts of a pg client that are used here. */
export interface RawPostgresClient {
  query(config: object): Promise<{ rows: Row[]; rowCount: number | null }>;
  on(event: 'error', listener: () => void): unknown;
  connection?: { stream?: { destroy(): void } };
}

const guarded = new WeakSet<RawPostgresClient>();

/** A client whose connection ends says so by an event, which would end the process where nobody listens. Its statements tell it too, and its pool has ears of its own. */
export function guard(client: RawPostgresClient): void {
  if (guarded.has(client)) return;
  guarded.add(client);
  client.on('error', () => undefined);
}

const names = new Map<string, string>();

/**
 * One client of pg. Statements of ours are prepared once for each connection, by a name that stands for their text.
 */
export class PostgresConnection implements DriverConnection {
  private isOver = false;

  /** @param give gives the client back to the pool; with an error, to be destroyed. Absent for a connection of the host's. */
  constructor(
    private readonly client: RawPostgresClient,
    private readonly bind: (sql: string) => string,
    private readonly give?: (error?: Error) => void,
  ) {
    guard(client);
  }

  async execute({ sql, params, writes }: Statement): Promise<Answer> {
    const text = this.bind(sql);
    try {
      const { rows, rowCount } = await this.client.query({ name: nameOf(text), text, values: params });
      return { rows: writes ? [] : rows, changes: rowCount ?? 0 };
    } catch (error) {
      // A connection of the host's stays the host's.
      if (this.give && isConnectionUnfit(error)) this.destroy();
      throw postgresFailure(error);
    }
  }

  async control(sql: string): Promise<void> {
    try {
      await this.client.query({ text: sql });
    } catch (error) {
      throw postgresFailure(error);
    }
  }

  release(): void {
    this.giveBack();
  }

  destroy(): void {
    if (this.isOver) return;
    // Not a polite end, which a network that swallows everything would never let finish.
    this.client.connection?.stream?.destroy();
    this.giveBack(new Error('destroyed'));
  }

  private giveBack(error?: Error): void {
    if (this.isOver) return;
    this.isOver = true;
    this.give?.(error);
  }
}

/** Names are limited to 63 bytes, and shared with whatever else prepares statements on the connection. */
function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    name = `agent_runs_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
    if (names.size >= 1_000) names.clear();
    names.set(text, name);
  }
  return name;
}

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

/** Verdicts on what pg throws. https://www.postgresql.org/docs/current/errcodes-appendix.html */
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

/** Two things that pg's pool leaves out, for the connections it makes from now on, whoever uses them. */
type ClientType = new (options: object) => object;

/** The parts of pg's pool that are used here. */
export interface RawPostgresPool {
  /** What its connections are made of. */
  Client?: ClientType;
  on(event: 'connect', listener: (client: RawPostgresClient) => void): unknown;
}

const prepared = new WeakSet<RawPostgresPool>();

/** @param connectTimeoutMs where the host has set no limit (`connectTimeoutMS`). A wait for a free connection is not limited. */
export function preparePool(pool: RawPostgresPool, connectTimeoutMs: number): void {
  if (prepared.has(pool)) return;
  prepared.add(pool);
  limitConnecting(pool, connectTimeoutMs);
  // Before the pool takes its own listener away and whoever waits for the connection has got it: a server that is stopping says so in the packet that lets one in.
  pool.on('connect', guard);
}

/**
 * pg waits for ever for a connection that is never made, on a network that swallows everything, and its pool keeps a place for it: after as many as the pool is
 * large the process never gets a connection again, though the network is back.
 */
function limitConnecting(pool: RawPostgresPool, timeoutMs: number): void {
  const { Client } = pool;
  if (!Client) return;
  pool.Client = class extends Client {
    constructor(options: { connectionTimeoutMillis?: number }) {
      const connectionTimeoutMillis = options.connectionTimeoutMillis || timeoutMs;
      super(
        // The password is not enumerable.
        Object.defineProperties(
          {},
          {
            ...Object.getOwnPropertyDescriptors(options),
            connectionTimeoutMillis: { value: connectionTimeoutMillis, enumerable: true },
          },
        ),
      );
    }
  };
}
