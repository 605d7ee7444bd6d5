import { AgentRunsError } from '../agent-runs.error.js';

/** The ask expired before the decision came. */
export class InteractionExpiredError extends AgentRunsError {
  readonly code = 'INTERACTION_EXPIRED';
  readonly family = 'request';
}
