/** One connection of mysql2 through its callback interface, which is what TypeORM's pool gives. Statements of ours are prepared (`execute`). */
import type { Answer, Row, SqlValue, Statement } from '../program.js';
import { DatabaseFailure } from '../database-failure.js';
import type { DriverConnection } from '../pooled/pooled-driver.js';
import { isConnectionUnfit, isDuplicateKey, mysqlFailure } from './mysql-failure.js';

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

export class MysqlConnection implements DriverConnection {
  private isDestroyed = false;

  /** @param isOurs borrowed from the pool by us; one of the host's stays the host's */
  constructor(
    private readonly raw: RawMysqlConnection,
    private readonly isOurs = false,
  ) {
    guard(raw);
  }

  async execute({ sql, params, writes, orLeave }: Statement): Promise<Answer> {
    try {
      await this.refuseTooLarge(params);
      const result = await this.call('execute', { ...SHAPE, sql, values: params.map(asText) });
      if (!writes) return { rows: result as Row[], changes: 0 };
      return { rows: [], changes: (result as { affectedRows: number }).affectedRows };
    } catch (error) {
      if (orLeave && isDuplicateKey(error)) return { rows: [], changes: 0 };
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
