/** Waits before a transaction is repeated, with jitter, so that two that met once do not meet again. */
const FIRST_MS = 2;
const LAST_MS = 100;

/**
 * @param tries how often it was tried before, from 0
 * @param deadline by `performance.now()`
 * @returns false, at once, when the deadline would pass meanwhile
 */
export async function backoff(tries: number, deadline: number): Promise<boolean> {
  const waitMs = Math.min(FIRST_MS * 2 ** tries, LAST_MS) * (0.5 + Math.random());
  if (performance.now() + waitMs >= deadline) return false;
  await new Promise((next) => setTimeout(next, waitMs));
  return true;
}
