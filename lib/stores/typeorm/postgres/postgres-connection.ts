/** One client of pg. Statements of ours are prepared once for each connection, by a name that stands for their text. */
import { createHash } from 'node:crypto';
import type { DriverConnection } from '../pooled/pooled-driver.js';
import type { Answer, Row, Statement } from '../program.js';
import { isConnectionUnfit, postgresFailure } from './postgres-failure.js';

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

export class PostgresConnection implements DriverConnection {
  private isOver = false;

  /** @param give gives the client back to the pool; with an error, to be destroyed. Absent for a connection of the host's. */
  constructor(
    private readonly client: RawPostgresClient,
    private readonly placed: (sql: string) => string,
    private readonly give?: (error?: Error) => void,
  ) {
    guard(client);
  }

  async execute({ sql, params, writes }: Statement): Promise<Answer> {
    const text = this.placed(sql);
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
