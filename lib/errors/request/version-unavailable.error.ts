import { AgentRunsError } from '../agent-runs.error.js';

/** No live worker can execute this run's agent version and definition. */
export class VersionUnavailableError extends AgentRunsError {
  readonly code = 'VERSION_UNAVAILABLE';
  readonly family = 'request';
}
