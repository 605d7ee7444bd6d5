import { AgentRunsError } from '../agent-runs.error.js';

/** Bad input, refused before anything was written. `details.fields` names each failing field. */
export class InvalidRequestError extends AgentRunsError {
  readonly code = 'INVALID_REQUEST';
  readonly family = 'request';
}
