/** How model calls are repeated after a passing failure. All durations in milliseconds. */
export interface RetryPolicy {
  /** Requests in all, the first included. Default 3. */
  maxAttempts: number;
  /** Delay before the second request. Default 1 s. */
  initialDelayMs: number;
  /** Upper bound of our own delay. Default 30 s. */
  maxDelayMs: number;
  /** Upper bound of a delay the provider announced. Default 10 min. */
  maxRetryAfterMs: number;
}

/** Ms to wait after the n-th failure in a row, from 1. */
export function ownDelay({ initialDelayMs, maxDelayMs }: RetryPolicy, failures: number): number {
  return Math.min(maxDelayMs, initialDelayMs * 2 ** Math.min(failures - 1, 52));
}

export const DEFAULT_RETRY_POLICY: Readonly<RetryPolicy> = Object.freeze({
  maxAttempts: 3,
  initialDelayMs: 1_000,
  maxDelayMs: 30_000,
  maxRetryAfterMs: 600_000,
});
