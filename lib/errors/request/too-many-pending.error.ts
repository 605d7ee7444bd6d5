import { AgentRunsError } from '../agent-runs.error.js';

/** `maxPendingRuns` runs are waiting already. `details.retryAfterMs` is a hint. */
export class TooManyPendingError extends AgentRunsError {
  readonly code = 'TOO_MANY_PENDING';
  readonly family = 'request';
  override readonly retryable = true;
}
