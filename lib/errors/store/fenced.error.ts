import { AgentRunsError } from '../agent-runs.error.js';

/** The attempt no longer owns the run: it was taken over, cancelled or settled. */
export class FencedError extends AgentRunsError {
  readonly code = 'FENCED';
  readonly family = 'store';
}
