/** Two things that pg's pool leaves out, for the connections it makes from now on, whoever uses them. */
import { guard, type RawPostgresClient } from './postgres-connection.js';

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
