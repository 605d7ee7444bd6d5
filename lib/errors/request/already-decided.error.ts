import { AgentRunsError } from '../agent-runs.error.js';

/** The ask was decided, or withdrawn, before; another decision came first. `details.status` says how. */
export class AlreadyDecidedError extends AgentRunsError {
  readonly code = 'ALREADY_DECIDED';
  readonly family = 'request';
}
