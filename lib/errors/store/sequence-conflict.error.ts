import { AgentRunsError } from '../agent-runs.error.js';

/** Other entries stand at these sequence numbers. */
export class SequenceConflictError extends AgentRunsError {
  readonly code = 'SEQUENCE_CONFLICT';
  readonly family = 'store';
}
