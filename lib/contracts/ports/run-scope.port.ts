/** Host code that a run executes: a tool's method, its probe, a model client. */
export interface ScopedCall {
  runId: string;
  /** Aborted when the call must stop. */
  signal: AbortSignal;
  /** A transaction is open until the call ends. */
  isTransactional: boolean;
}

/** Tells which call of a run the running code is part of, however deep inside the host's code it is. */
export interface RunScope {
  /** @param call null: what `body` does is part of no run */
  enter<T>(call: ScopedCall | null, body: () => T): T;
  current(): ScopedCall | null;
}
