import { AgentRunsError } from './agent-runs.error.js';

/** The database or its machine must be mended, or answers later. */
abstract class StoreError extends AgentRunsError {
  readonly family = 'store';
}

/** The store broke a promise: an unexpected row count, a gap. This process must stop working with it. */
export class BrokenStoreError extends StoreError {
  readonly code = 'STORE_BROKEN';
}

/** The attempt no longer owns the run: it was taken over, cancelled or settled. */
export class FencedError extends StoreError {
  readonly code = 'FENCED';
}

/** One run's journal cannot be read; other runs are not affected. */
export class JournalCorruptError extends StoreError {
  readonly code = 'JOURNAL_CORRUPT';
}

/** The schema was written by a newer package; the message names both versions. */
export class NewerSchemaError extends StoreError {
  readonly code = 'NEWER_SCHEMA';
}

/** Other entries stand at these sequence numbers. */
export class SequenceConflictError extends StoreError {
  readonly code = 'SEQUENCE_CONFLICT';
}

/** A conflict of concurrent transactions that the store could not settle by repeating. */
export class StoreConflictError extends StoreError {
  readonly code = 'STORE_CONFLICT';
  override readonly retryable = true;
}

/** Another process holds the store; the message says which and how to clear it. */
export class StoreLockedError extends StoreError {
  readonly code = 'STORE_LOCKED';
}

/** A stream was cut, because its process shuts down. Read on after `details.after`, in another process. */
export class StreamInterruptedError extends StoreError {
  readonly code = 'STREAM_INTERRUPTED';
  override readonly retryable = true;
}

/** The database did not answer or refused for now. Never a run's failure (I10). */
export class StoreUnavailableError extends StoreError {
  readonly code = 'STORE_UNAVAILABLE';
  override readonly retryable = true;
}
