import { AgentRunsError } from '../agent-runs.error.js';

/** Another process holds the store; the message says which and how to clear it. */
export class StoreLockedError extends AgentRunsError {
  readonly code = 'STORE_LOCKED';
  readonly family = 'store';
}
