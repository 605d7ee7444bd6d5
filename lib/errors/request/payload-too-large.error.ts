import { AgentRunsError } from '../agent-runs.error.js';

/** The input is larger than the limit option allows, or than the database takes in one statement. */
export class PayloadTooLargeError extends AgentRunsError {
  readonly code = 'PAYLOAD_TOO_LARGE';
  readonly family = 'request';
}
