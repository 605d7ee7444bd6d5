/** Options of the store on a host's data source. */
export interface TypeOrmRunStoreOptions {
  /**
   * Create or migrate the tables when the store opens, under a lock of the database. Default: true unless `NODE_ENV` is `production`. When false, tables that
   * are missing or older are an error that says what to run.
   */
  migrate?: boolean;
  /**
   * How long one operation of the store may take in all, in ms: waiting for a connection or for SQLite's turn, and repetitions after conflicts, included.
   * Then it is refused with a StoreUnavailableError. Default 10,000, at most 2^31 - 1; a sixth of the lease is a good
   * value.
   */
  statementTimeoutMs?: number;
}
