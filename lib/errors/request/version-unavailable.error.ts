import { AgentRunsError } from '../agent-runs.error.js';

/** No live worker can execute this run's agent version and definition (JRN-7a). */
export class VersionUnavailableError extends AgentRunsError {
  readonly code = 'VERSION_UNAVAILABLE';
  readonly family = 'request';
}
