import { AgentRunsError } from '../agent-runs.error.js';

/** Whoever asks may not do this: the ask needs a role they do not have (`details.approverRole`). */
export class ForbiddenError extends AgentRunsError {
  readonly code = 'FORBIDDEN';
  readonly family = 'request';
}
