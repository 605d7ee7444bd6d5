import { AgentRunsError, type AgentRunsErrorOptions } from './agent-runs.error.js';

/** Recorded in a run. */
abstract class RunError extends AgentRunsError {
  readonly family = 'run';
}

/** Thrown into a tool by `context.requestApproval` when a person denied, or nobody answered in time. The tool may handle it. */
export class ApprovalDeniedError extends RunError {
  readonly code = 'APPROVAL_DENIED';
}

/** A pipe refused the arguments before the method was entered. */
export class InvalidToolArgumentsError extends RunError {
  readonly code = 'INVALID_ARGUMENTS';
}

/** What is known about a failed model request. */
export interface ModelCallFacts {
  /** HTTP status; absent when there was no answer. */
  status?: number;
  /** Whether the same request may succeed later. */
  retryable: boolean;
  /** Announced by the provider (`Retry-After`, RFC 9110 section 10.2.3), in ms from now; absent when not or not usable. */
  retryAfterMs?: number;
}

/** A model request failed. The message is fit to be stored: no body, no header, no key. */
export class ModelCallError extends RunError {
  readonly code = 'MODEL_CALL_FAILED';
  override readonly retryable: boolean;
  /** HTTP status; absent when there was no answer. */
  readonly status?: number;
  /** The wait that the provider announced, in ms; absent = none. */
  readonly retryAfterMs?: number;

  constructor(message: string, facts: ModelCallFacts, options?: AgentRunsErrorOptions) {
    super(message, options);
    this.retryable = facts.retryable;
    if (facts.status !== undefined) this.status = facts.status;
    if (facts.retryAfterMs !== undefined) this.retryAfterMs = facts.retryAfterMs;
  }
}

/** Thrown into a tool by `context.ask` when a person declined or cancelled, or nobody answered in time. The tool may handle it. */
export class QuestionNotAnsweredError extends RunError {
  readonly code = 'QUESTION_NOT_ANSWERED';
}

/** A guard refused the call before the method was entered. */
export class ToolDeniedError extends RunError {
  readonly code = 'TOOL_DENIED';
}
