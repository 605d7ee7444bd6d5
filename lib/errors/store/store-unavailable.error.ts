import { AgentRunsError } from '../agent-runs.error.js';

/** The database did not answer or refused for now. Never a run's failure (I10). */
export class StoreUnavailableError extends AgentRunsError {
  readonly code = 'STORE_UNAVAILABLE';
  readonly family = 'store';
  override readonly retryable = true;
}
