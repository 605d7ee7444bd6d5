import { AgentRunsError } from '../agent-runs.error.js';

/** A result or an answer that does not fit the schema it must fit. */
export class InvalidAnswerError extends AgentRunsError {
  readonly code = 'INVALID_ANSWER';
  readonly family = 'request';
}
