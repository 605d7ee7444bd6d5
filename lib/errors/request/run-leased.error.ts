import { AgentRunsError } from '../agent-runs.error.js';

/** A live worker owns the run. `details` has `owner` and `expiresAt`. */
export class RunLeasedError extends AgentRunsError {
  readonly code = 'RUN_LEASED';
  readonly family = 'request';
}
