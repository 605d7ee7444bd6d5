import { AgentRunsError } from '../agent-runs.error.js';

/** Other entries stand at these sequence numbers (STO-1). */
export class SequenceConflictError extends AgentRunsError {
  readonly code = 'SEQUENCE_CONFLICT';
  readonly family = 'store';
}
