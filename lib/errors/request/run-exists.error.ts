import { AgentRunsError } from '../agent-runs.error.js';

/** A run with this id exists. */
export class RunExistsError extends AgentRunsError {
  readonly code = 'RUN_EXISTS';
  readonly family = 'request';
}
