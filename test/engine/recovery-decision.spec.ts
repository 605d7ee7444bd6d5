import { describe, expect, it } from '@jest/globals';
import type { OperationInterruption } from '../../lib/contracts/operation.js';
import { RECOVERY_POLICIES, stricterPolicy, type RecoveryPolicy } from '../../lib/contracts/policies.js';
import { decideRecovery, type RecoveryDecision } from '../../lib/engine/recovery-decision.js';

type Row = [
  policy: RecoveryPolicy,
  crash: RecoveryDecision,
  firstTimeout: RecoveryDecision,
  secondTimeout: RecoveryDecision,
];

/** JRN-5 after a crash, decision timeouts-and-crashes after a timeout. */
const TABLE: Row[] = [
  ['manual', 'attention', 'attention', 'attention'],
  ['inform', 'inform', 'inform', 'inform'],
  ['probe', 'probe', 'probe', 'probe'],
  ['idempotent', 'repeat', 'repeat', 'attention'],
  ['safe', 'repeat', 'error', 'error'],
  ['transactional', 'repeat', 'error', 'error'],
];
const STRICTNESS: RecoveryPolicy[] = ['manual', 'inform', 'probe', 'idempotent', 'safe'];

function decide(
  stored: RecoveryPolicy,
  current: RecoveryPolicy | null,
  interruptedBy: OperationInterruption,
  attempts = 1,
) {
  return decideRecovery({ stored, current, interruptedBy, attempts });
}

describe('what may be done about a call that was cut', () => {
  it.each(TABLE)('JRN-5: %s after a crash → %s', (policy, crash) => {
    for (const attempts of [1, 2, 7]) expect(decide(policy, policy, 'crash', attempts)).toBe(crash);
  });

  it.each(TABLE)('MOD-8: %s after a timeout → %s, then %s, then %s', (policy, _crash, first, second) => {
    expect(decide(policy, policy, 'timeout', 1)).toBe(first);
    expect(decide(policy, policy, 'timeout', 2)).toBe(second);
    expect(decide(policy, policy, 'timeout', 3)).toBe(second);
  });

  it('JRN-5: the stricter of the stored and the registered policy decides, whichever of the two it is', () => {
    for (const stored of STRICTNESS) {
      for (const current of STRICTNESS) {
        const stricter = STRICTNESS[
          Math.min(STRICTNESS.indexOf(stored), STRICTNESS.indexOf(current))
        ] as RecoveryPolicy;
        expect(stricterPolicy(stored, current)).toBe(stricter);
        for (const cut of ['crash', 'timeout', 'cancel'] as const)
          expect(decide(stored, current, cut)).toBe(decide(stricter, stricter, cut));
      }
    }
  });

  it('JRN-5: transactional is decided by its own row: what was begun so left a result or nothing, what was begun otherwise is not made safe', () => {
    for (const other of STRICTNESS) {
      expect(stricterPolicy('transactional', other)).toBe('transactional');
      expect(stricterPolicy(other, 'transactional')).toBe(other);
    }
    expect(decide('transactional', 'manual', 'crash')).toBe('repeat');
    expect(decide('manual', 'transactional', 'crash')).toBe('attention');
  });

  it('JRN-5: a tool that is no longer registered is judged by what was stored', () => {
    for (const policy of RECOVERY_POLICIES) expect(decide(policy, null, 'crash')).toBe(decide(policy, policy, 'crash'));
  });
});
