/**
 * HTTP statuses after which the same request may succeed: timeouts, conflicts, throttling, and the server's own
 * failures (529 = overloaded).
 */
const PASSING: ReadonlySet<number> = new Set([408, 409, 425, 429]);

export function isRetryableStatus(status: number): boolean {
  return PASSING.has(status) || (status >= 500 && status <= 599);
}
