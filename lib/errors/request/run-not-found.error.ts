import { AgentRunsError } from '../agent-runs.error.js';

/** No run has this id. */
export class RunNotFoundError extends AgentRunsError {
  readonly code = 'RUN_NOT_FOUND';
  readonly family = 'request';
}
