import { AgentRunsError } from '../agent-runs.error.js';

/** The input is larger than the limit option allows (SUB-3, OPS-3), or than the database takes in one statement. */
export class PayloadTooLargeError extends AgentRunsError {
  readonly code = 'PAYLOAD_TOO_LARGE';
  readonly family = 'request';
}
