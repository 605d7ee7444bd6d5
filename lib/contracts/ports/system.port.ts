/**
 * Time for the engine. Ownership is judged by the database's clock instead (I12); this one serves timers and journal
 * times.
 */
export interface Clock {
  /**
   * Epoch ms by the wall clock, which may be set at any moment: for what is shown and recorded, never for a deadline.
   */
  now(): number;
  /**
   * Ms since some moment, on a clock that is never set back and that counts the time in which the machine was
   * suspended: for deadlines. Only differences mean something.
   */
  elapsed(): number;
  /**
   * Calls back once after `ms` (any length; longer than a platform timer allows included). Never keeps the process
   * alive.
   * @returns cancels it; calling it again or late does nothing
   */
  after(ms: number, callback: () => void): () => void;
}

/** Ids and chance for the engine. */
export interface IdSource {
  /** A time-ordered unique id (UUIDv7, RFC 9562). */
  id(): string;
  /** Uniform in [0, 1). */
  random(): number;
}

/** Canonical text and digests for the engine. */
export interface Digester {
  /** RFC 8785 canonical JSON: key order does not matter. @param value JSON, of whatever interface */
  canonical(value: unknown): string;
  /** Whether two values are the same JSON, key order aside. */
  isSame(a: unknown, b: unknown): boolean;
  /** SHA-256 of the UTF-8 text, hex. */
  digest(text: string): string;
}

/**
 * The engine's log for operators. `error` needs an operator; after a `warn` the engine continues by itself. Fields
 * carry ids and codes, never content; `stack` is what host code threw, as `thrownStack` formats it.
 */
export interface EngineLog {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

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
