import { AgentRunsError } from '../agent-runs.error.js';

/** No agent of this name and version is registered here; the message lists those that are. */
export class AgentNotFoundError extends AgentRunsError {
  readonly code = 'AGENT_NOT_FOUND';
  readonly family = 'request';
}
