import { AgentRunsError } from '../agent-runs.error.js';

/** A cursor that this list did not give, or that lies ahead of the run. */
export class InvalidCursorError extends AgentRunsError {
  readonly code = 'INVALID_CURSOR';
  readonly family = 'request';
}
