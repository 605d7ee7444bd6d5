import { AgentRunsError } from '../agent-runs.error.js';

/** Thrown into a tool by `context.requestApproval` when a person denied, or nobody answered in time. The tool may handle it. */
export class ApprovalDeniedError extends AgentRunsError {
  readonly code = 'APPROVAL_DENIED';
  readonly family = 'run';
}
