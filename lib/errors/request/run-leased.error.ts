import { AgentRunsError } from '../agent-runs.error.js';

/** A live worker owns the run. `details` has `owner` and `expiresAt` (OWN-4). */
export class RunLeasedError extends AgentRunsError {
  readonly code = 'RUN_LEASED';
  readonly family = 'request';
}
