import { AgentRunsError } from '../agent-runs.error.js';

/** The session has an unfinished run and `enqueue` was not given. */
export class SessionBusyError extends AgentRunsError {
  readonly code = 'SESSION_BUSY';
  readonly family = 'request';
}
