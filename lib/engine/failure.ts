import type { Clock, IdSource } from '../contracts/ports/system.port.js';
import { backoff } from '../contracts/policies.js';
import { AgentRunsError, type ErrorCode } from '../errors/agent-runs.error.js';

/** What an error means for the work in which it was thrown. */
export type Failure =
  /** The store does not answer, or refuses for now: the same call may succeed later (I10). */
  | 'unavailable'
  /** The attempt no longer owns its run (I3). */
  | 'fenced'
  /** The journal of one run cannot be read. */
  | 'corrupt'
  /** The store broke a promise; this process must stop working with it. */
  | 'broken'
  /** More than one commit takes; nothing of it was written. */
  | 'too_large'
  /** A guard refused the call of a tool. */
  | 'denied'
  /** A pipe or a schema refused its arguments. */
  | 'invalid_arguments'
  /** A person refused, or did not decide in time. */
  | 'answered'
  /** Anything else: a mistake in the host's code or in this package. */
  | 'fault';

const FAILURE_OF_CODE: Partial<Record<ErrorCode, Failure>> = {
  FENCED: 'fenced',
  JOURNAL_CORRUPT: 'corrupt',
  PAYLOAD_TOO_LARGE: 'too_large',
  TOOL_DENIED: 'denied',
  INVALID_ARGUMENTS: 'invalid_arguments',
  APPROVAL_DENIED: 'answered',
  QUESTION_NOT_ANSWERED: 'answered',
};

/** The one classification of errors in the engine. */
export function failureOf(error: unknown): Failure {
  if (!AgentRunsError.is(error)) return 'fault';
  const known = FAILURE_OF_CODE[error.code];
  if (known) return known;
  if (error.family !== 'store') return 'fault';
  return error.retryable ? 'unavailable' : 'broken';
}

export function isOfStore(failure: Failure): boolean {
  return failure === 'unavailable' || failure === 'fenced' || failure === 'corrupt' || failure === 'broken';
}

const STORE_BACKOFF = { initialDelayMs: 50, maxDelayMs: 2_000 };

/**
 * Waits before a call is repeated that the store did not answer.
 * @param failures how often it failed in a row, from 1
 */
export function storePause({ clock, ids }: { clock: Clock; ids: IdSource }, failures: number): Promise<void> {
  const waitMs = Math.ceil(backoff(STORE_BACKOFF, failures, ids.random()));
  return new Promise((resolve) => clock.after(waitMs, resolve));
}

/**
 * Repeats a call until the store answers (I10): for what must be known before a run can go on, or must not be lost.
 * @param work returns undefined when it is too early for an answer
 * @param isOver checked before each try
 * @returns null when it was over before the store answered
 * @throws whatever is no passing trouble of the store
 */
export async function untilAnswered<T>(
  ports: { clock: Clock; ids: IdSource },
  work: () => Promise<T | undefined>,
  isOver: () => boolean = () => false,
): Promise<T | null> {
  for (let tries = 1; !isOver(); tries++) {
    try {
      const answer = await work();
      if (answer !== undefined) return answer;
    } catch (error) {
      if (failureOf(error) !== 'unavailable') throw error;
    }
    await storePause(ports, tries);
  }
  return null;
}
