import { AgentRunsError } from '../agent-runs.error.js';

/** The request id was used before with other input. */
export class RequestConflictError extends AgentRunsError {
  readonly code = 'REQUEST_CONFLICT';
  readonly family = 'request';
}
