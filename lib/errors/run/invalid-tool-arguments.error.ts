import { AgentRunsError } from '../agent-runs.error.js';

/** A pipe refused the arguments before the method was entered. */
export class InvalidToolArgumentsError extends AgentRunsError {
  readonly code = 'INVALID_ARGUMENTS';
  readonly family = 'run';
}
