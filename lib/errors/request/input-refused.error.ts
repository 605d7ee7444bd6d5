import { AgentRunsError } from '../agent-runs.error.js';

/** The guardrail refused a message; it was not stored. */
export class InputRefusedError extends AgentRunsError {
  readonly code = 'INPUT_REFUSED';
  readonly family = 'request';
}
