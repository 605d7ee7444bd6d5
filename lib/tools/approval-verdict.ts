/**
 * Asks a tool's approval rule once. The rule gets frozen copies; one that throws, answers nonsense or does not answer in time asks a person, because
 * a gate that fails must not open.
 */
import { parseDuration } from '../contracts/duration.js';
import type { ApprovalVerdict } from '../contracts/journal-entry.js';
import type { JsonObject } from '../contracts/json.js';
import type { Clock } from '../contracts/ports/clock.port.js';
import type { ApprovalRequirement, ApprovalRule } from '../decorators/agent-tool.options.js';
import { copyJson, deepFreeze } from './schema/json-copy.js';

type AskedCall = Parameters<ApprovalRule<JsonObject>>[1];

/** How long a rule may take. */
export const APPROVAL_RULE_TIMEOUT_MS = 5_000;

const SLOW = Symbol('slow');

export async function askApprovalRule(
  rule: boolean | ApprovalRule<JsonObject> | undefined,
  input: JsonObject,
  call: AskedCall,
  clock: Clock,
): Promise<ApprovalVerdict | null> {
  if (rule === undefined || rule === false) return null;
  if (rule === true) return {};
  try {
    const answer = await answered(rule, input, call, clock);
    if (answer === false) return null;
    if (answer === SLOW) return asking('its approval rule did not answer in time');
    return verdictOf(answer);
  } catch (error) {
    return asking(`its approval rule failed (${error instanceof Error ? error.name : 'not an error'})`);
  }
}

async function answered(
  rule: ApprovalRule<JsonObject>,
  input: JsonObject,
  call: AskedCall,
  clock: Clock,
): Promise<unknown> {
  let cancel: (() => void) | undefined;
  const slow = new Promise<typeof SLOW>((resolve) => {
    cancel = clock.after(APPROVAL_RULE_TIMEOUT_MS, () => resolve(SLOW));
  });
  const asked = (async () => rule(deepFreeze(copyJson(input)), deepFreeze(structuredClone(call))))();
  try {
    return await Promise.race([asked, slow]);
  } finally {
    cancel?.();
    // A late failure of a slow rule belongs to nobody.
    asked.catch(() => undefined);
  }
}

function verdictOf(answer: unknown): ApprovalVerdict {
  if (answer === true) return {};
  if (typeof answer !== 'object' || answer === null) {
    return asking('its approval rule answered neither a boolean nor a requirement');
  }
  const { reason, risk, approverRole, expiresIn } = answer as ApprovalRequirement;
  return {
    ...(typeof reason === 'string' && { reason }),
    ...(typeof risk === 'string' && { risk }),
    ...(typeof approverRole === 'string' && { approverRole }),
    ...(expiresIn != null && { expiresInMs: expiresIn === 'never' ? null : parseDuration(expiresIn, 'expiresIn') }),
  };
}

function asking(reason: string): ApprovalVerdict {
  return { reason: `A person must decide because ${reason}.` };
}
