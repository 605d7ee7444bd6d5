import { AgentRunsError } from '../agent-runs.error.js';

/** The schema was written by a newer package; the message names both versions. */
export class NewerSchemaError extends AgentRunsError {
  readonly code = 'NEWER_SCHEMA';
  readonly family = 'store';
}
