import { AgentRunsError } from '../agent-runs.error.js';

/** The operation is not one that may be resolved now (JRN-10). */
export class OperationConflictError extends AgentRunsError {
  readonly code = 'OPERATION_CONFLICT';
  readonly family = 'request';
}
