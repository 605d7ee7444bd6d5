import { AgentRunsError } from '../agent-runs.error.js';

/** A guard refused the call before the method was entered. */
export class ToolDeniedError extends AgentRunsError {
  readonly code = 'TOOL_DENIED';
  readonly family = 'run';
}
