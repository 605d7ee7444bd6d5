import { AgentRunsError } from '../agent-runs.error.js';

/** The ask expired before the decision came (PPL-3). */
export class InteractionExpiredError extends AgentRunsError {
  readonly code = 'INTERACTION_EXPIRED';
  readonly family = 'request';
}
