import { AgentRunsError } from '../agent-runs.error.js';

/** The run has no interaction with this id. */
export class InteractionNotFoundError extends AgentRunsError {
  readonly code = 'INTERACTION_NOT_FOUND';
  readonly family = 'request';
}
