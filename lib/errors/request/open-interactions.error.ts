import { AgentRunsError } from '../agent-runs.error.js';

/** The run waits for decisions that are still open; `details.interactions` names them. */
export class OpenInteractionsError extends AgentRunsError {
  readonly code = 'OPEN_INTERACTIONS';
  readonly family = 'request';
}
