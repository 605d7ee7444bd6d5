/**
 * pg waits for ever for a connection that is never made, on a network that swallows everything, and its pool keeps a place for it: after as many as the pool is
 * large the process never gets a connection again, though the network is back. Where the host has set no limit (`connectTimeoutMS`), ours holds.
 */

type ClientType = new (options: object) => object;

/** The parts of pg's pool that are used here. */
export interface RawPostgresPool {
  /** What its connections are made of. */
  Client?: ClientType;
}

const limited = new WeakSet<RawPostgresPool>();

/** For the connections that the pool makes from now on. A wait for a free one is not limited. */
export function limitConnecting(pool: RawPostgresPool, timeoutMs: number): void {
  if (limited.has(pool)) return;
  limited.add(pool);
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
