import { AgentRunsError } from '../agent-runs.error.js';

/** Thrown into a tool by `context.ask` when a person declined or cancelled, or nobody answered in time. The tool may handle it. */
export class QuestionNotAnsweredError extends AgentRunsError {
  readonly code = 'QUESTION_NOT_ANSWERED';
  readonly family = 'run';
}
