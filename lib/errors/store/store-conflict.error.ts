import { AgentRunsError } from '../agent-runs.error.js';

/** A conflict of concurrent transactions that the store could not settle by repeating. */
export class StoreConflictError extends AgentRunsError {
  readonly code = 'STORE_CONFLICT';
  readonly family = 'store';
  override readonly retryable = true;
}
