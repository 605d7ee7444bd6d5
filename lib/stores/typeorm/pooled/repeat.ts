import { StoreConflictError, StoreUnavailableError } from '../../../errors/store.errors.js';
import { DatabaseFailure, forCaller } from '../database-failure.js';
import { LostRaceError } from '../lost-race.error.js';
import type { Connections, Deadline } from './connections.js';

const FIRST_MS = 2;
const LAST_MS = 100;

/** Connections that one operation gives up because the tables are out of their reach: as many as the pools of most hosts hold. */
const MAX_UNFIT = 10;

/**
 * Repeats an operation on what may pass: conflicts and lost connections until the deadline, with jitter, so that two that met once do not meet again; and at
 * once on another connection where the tables are out of reach for one.
 * @throws store errors, and what else the operation throws
 */
export async function repeat<T>(
  doing: string,
  { timeoutMs }: Pick<Connections, 'timeoutMs'>,
  deadline: Deadline,
  once: () => Promise<T>,
): Promise<T> {
  let unfit = 0;
  for (let tries = 0; ; tries += 1) {
    try {
      return await once();
    } catch (error) {
      const failure = error instanceof DatabaseFailure ? error : undefined;
      if (failure?.verdict === 'out_of_reach' && (unfit += 1) <= MAX_UNFIT) continue;
      const mayPass = error instanceof LostRaceError || failure?.verdict === 'conflict' || failure?.isConnectionLost;
      if (!mayPass) throw forCaller(error, doing);
      if (await backoff(tries, deadline)) continue;
      if (!failure) throw lostRace(doing);
      throw new StoreUnavailableError(
        `The database could not ${doing} within ${timeoutMs} ms: ${failure.databaseCode}, again and again.`,
        { details: { databaseCode: failure.databaseCode } },
      );
    }
  }
}

/** Others committed first, each time. */
export function lostRace(doing: string): StoreConflictError {
  return new StoreConflictError(
    `Others committed first each time the store tried to ${doing}. Repeat the transaction.`,
  );
}

/**
 * @param tries how often it was tried before, from 0
 * @param deadline by `performance.now()`
 * @returns false, at once, when the deadline would pass meanwhile
 */
async function backoff(tries: number, deadline: number): Promise<boolean> {
  const waitMs = Math.min(FIRST_MS * 2 ** tries, LAST_MS) * (0.5 + Math.random());
  if (performance.now() + waitMs >= deadline) return false;
  await new Promise((next) => setTimeout(next, waitMs));
  return true;
}
