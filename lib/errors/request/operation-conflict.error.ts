import { AgentRunsError } from '../agent-runs.error.js';

/** The operation is not one that may be resolved now. */
export class OperationConflictError extends AgentRunsError {
  readonly code = 'OPERATION_CONFLICT';
  readonly family = 'request';
}
