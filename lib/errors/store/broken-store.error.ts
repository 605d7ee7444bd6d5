import { AgentRunsError } from '../agent-runs.error.js';

/** The store broke a promise: an unexpected row count, a gap. This process must stop working with it. */
export class BrokenStoreError extends AgentRunsError {
  readonly code = 'STORE_BROKEN';
  readonly family = 'store';
}
