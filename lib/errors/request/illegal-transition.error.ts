import { AgentRunsError } from '../agent-runs.error.js';

/** The run's status does not allow this (see the transition table). */
export class IllegalTransitionError extends AgentRunsError {
  readonly code = 'ILLEGAL_TRANSITION';
  readonly family = 'request';
}
