import type { RecordedText } from './text.js';

/** Every status a run can have. */
export const RUN_STATUSES = [
  'queued',
  'pending',
  'running',
  'retry_wait',
  'waiting',
  'interrupted',
  'needs_attention',
  'completed',
  'failed',
  'cancelled',
  'blocked',
  'timed_out',
] as const;

/**
 * The states of a run and the phase derived from each. A status is stored; a phase never is.
 * Settled statuses are written once per generation of a run (I4) and left only by `retry` (failed) or `restart`.
 */
export type RunStatus = (typeof RUN_STATUSES)[number];

/** Every phase a run can be in. */
export const RUN_PHASES = ['queued', 'active', 'suspended', 'settled'] as const;

/** `queued` waits for its session, `active` moves by itself, `suspended` needs a person, `settled` is final. */
export type RunPhase = (typeof RUN_PHASES)[number];

const PHASE_OF: Readonly<Record<RunStatus, RunPhase>> = {
  queued: 'queued',
  pending: 'active',
  running: 'active',
  retry_wait: 'active',
  waiting: 'suspended',
  interrupted: 'suspended',
  needs_attention: 'suspended',
  completed: 'settled',
  failed: 'settled',
  cancelled: 'settled',
  blocked: 'settled',
  timed_out: 'settled',
};

/** The phase a status belongs to. */
export function phaseOf(status: RunStatus): RunPhase {
  return PHASE_OF[status];
}

/** The statuses of a phase, in the order of {@link RUN_STATUSES}. */
export function statusesOf(phase: RunPhase): RunStatus[] {
  return RUN_STATUSES.filter((status) => PHASE_OF[status] === phase);
}

/** Whether a run of this status is over: only `retry` (of a failed run) or `restart` move it again. */
export function isSettled(status: RunStatus): boolean {
  return PHASE_OF[status] === 'settled';
}

/** What a `waiting` run waits for. */
export type WaitReason = 'approval' | 'question' | 'budget';

/** Why recovery stopped rather than guessed. */
export type AttentionReason =
  | 'uncertain_outcome'
  | 'version_mismatch'
  | 'input_drift'
  | 'unserialisable_result'
  | 'recovery_exhausted'
  | 'journal_corrupt'
  | 'limit';

/** What a person must settle before the run can continue. */
export interface Attention {
  /** Which kind of trouble it is. */
  reason: AttentionReason;
  /** The first blocked operation, by its run-local key. */
  operationKey?: string;
  /** All blocked operations, in call order. */
  operations?: string[];
  /** What happened and what to do, in words. */
  detail: RecordedText;
}
