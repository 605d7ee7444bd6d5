/**
 * What may be done about a tool call that was cut in the middle, and which of two policies is the stricter.
 * A stored policy is never relaxed by a later registration (I8).
 */

/** From the strictest to the most lenient; `transactional` has a row of its own and stands apart. */
export const RECOVERY_POLICIES = ['manual', 'inform', 'probe', 'idempotent', 'safe', 'transactional'] as const;

export type RecoveryPolicy = (typeof RECOVERY_POLICIES)[number];

/**
 * The stricter of two policies. `transactional` next to anything else: a call that was started transactionally left either a result or nothing,
 * so the stored `transactional` stands; a call started otherwise is not made safe by a registration that became transactional.
 * @param stored the policy committed with the call
 * @param current the policy registered now
 */
export function stricterPolicy(stored: RecoveryPolicy, current: RecoveryPolicy): RecoveryPolicy {
  if (stored === 'transactional' || current === 'transactional') return stored;
  return RECOVERY_POLICIES.indexOf(stored) <= RECOVERY_POLICIES.indexOf(current) ? stored : current;
}
