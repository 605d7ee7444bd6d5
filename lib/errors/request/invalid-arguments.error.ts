import { AgentRunsError } from '../agent-runs.error.js';

/** Edited arguments that do not fit the tool. The ask stays open. */
export class InvalidArgumentsError extends AgentRunsError {
  readonly code = 'INVALID_ARGUMENTS';
  readonly family = 'request';
}
