import { AgentRunsError, type AgentRunsErrorOptions } from '../agent-runs.error.js';

export interface ModelCallFacts {
  /** HTTP status; absent when there was no answer. */
  status?: number;
  /** Whether the same request may succeed later. */
  retryable: boolean;
  /** Announced by the provider (`Retry-After`, RFC 9110 section 10.2.3), in ms from now; absent when not or not usable. */
  retryAfterMs?: number;
}

/** A model request failed. The message is fit to be stored: no body, no header, no key. */
export class ModelCallError extends AgentRunsError {
  readonly code = 'MODEL_CALL_FAILED';
  readonly family = 'run';
  override readonly retryable: boolean;
  readonly status?: number;
  readonly retryAfterMs?: number;

  constructor(message: string, facts: ModelCallFacts, options?: AgentRunsErrorOptions) {
    super(message, options);
    this.retryable = facts.retryable;
    if (facts.status !== undefined) this.status = facts.status;
    if (facts.retryAfterMs !== undefined) this.retryAfterMs = facts.retryAfterMs;
  }
}
