import type { OperationInterruption } from '../contracts/operation.js';
import { stricterPolicy, type RecoveryPolicy } from '../contracts/policies.js';

export type RecoveryDecision =
  /** Run it again under the same operation id. */
  | 'repeat'
  /** Ask the tool's probe. */
  | 'probe'
  /** Tell the model that the outcome is unknown. */
  | 'inform'
  /** A person must settle it. */
  | 'attention'
  /** It surely did not take effect, or does not matter: an error result. */
  | 'error';

/** A tool that never ends in time is not begun for ever because its probe says that nothing happened. */
const MAX_TIMED_OUT_EXECUTIONS = 5;

export interface UncertainCall {
  stored: RecoveryPolicy;
  /** Null when the tool is no longer registered. */
  current: RecoveryPolicy | null;
  interruptedBy: OperationInterruption;
  /** How often it was begun. */
  attempts: number;
}

/**
 * What to do about a tool call that was begun and has no result. Pure; the policy is the stricter of the stored and the
 * current one (I8).
 */
export function decideRecovery(call: UncertainCall): RecoveryDecision {
  const policy = stricterPolicy(call.stored, call.current ?? call.stored);
  const timedOut = call.interruptedBy === 'timeout';
  switch (policy) {
    case 'transactional':
    case 'safe':
      return timedOut ? 'error' : 'repeat';
    case 'idempotent':
      // Decision timeouts-and-crashes: after a timeout once more, then as manual.
      return timedOut && call.attempts > 1 ? 'attention' : 'repeat';
    case 'probe':
      return timedOut && call.attempts >= MAX_TIMED_OUT_EXECUTIONS ? 'attention' : 'probe';
    case 'inform':
      return 'inform';
    case 'manual':
      return 'attention';
  }
}
