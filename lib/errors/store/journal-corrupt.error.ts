import { AgentRunsError } from '../agent-runs.error.js';

/** One run's journal cannot be read; other runs are not affected. */
export class JournalCorruptError extends AgentRunsError {
  readonly code = 'JOURNAL_CORRUPT';
  readonly family = 'store';
}
