/** From the strictest to the most lenient; `transactional` has a row of its own and stands apart. */
export const RECOVERY_POLICIES = ['manual', 'inform', 'probe', 'idempotent', 'safe', 'transactional'] as const;

/**
 * What may be done about an interrupted tool call.
 * A stored policy is never relaxed by a later registration (I8).
 */
export type RecoveryPolicy = (typeof RECOVERY_POLICIES)[number];

/**
 * The stricter of two policies. `transactional` next to anything else: a call that was started transactionally left
 * either a result or nothing, so the stored `transactional` stands; a call started otherwise is not made safe by a
 * registration that became transactional.
 * @param stored the policy committed with the call
 * @param current the policy registered now
 */
export function stricterPolicy(stored: RecoveryPolicy, current: RecoveryPolicy): RecoveryPolicy {
  if (stored === 'transactional' || current === 'transactional') return stored;
  return RECOVERY_POLICIES.indexOf(stored) <= RECOVERY_POLICIES.indexOf(current) ? stored : current;
}

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

/**
 * Ms to wait after the n-th failure in a row: the initial delay, doubled with each further failure up to the maximum.
 * @param failures from 1
 * @param random from 0 to 1; spreads callers that failed together over the second half of the delay. Default: not
 * spread.
 */
export function backoff(
  { initialDelayMs, maxDelayMs }: Pick<RetryPolicy, 'initialDelayMs' | 'maxDelayMs'>,
  failures: number,
  random = 1,
): number {
  return Math.min(maxDelayMs, initialDelayMs * 2 ** Math.min(failures - 1, 52)) * (0.5 + random / 2);
}

export const DEFAULT_RETRY_POLICY: Readonly<RetryPolicy> = Object.freeze({
  maxAttempts: 3,
  initialDelayMs: 1_000,
  maxDelayMs: 30_000,
  maxRetryAfterMs: 600_000,
});
