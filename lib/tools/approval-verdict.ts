/**
 * Asks a tool's approval rule once. The rule gets frozen copies; one that answers nonsense or does not answer in time asks a person, as the engine does when it throws, because
 * a gate that fails must not open.
 */
import { type Duration, parseDuration } from '../contracts/duration.js';
import { isText, optional, readAnswer } from '../contracts/ports/host.port.js';
import type { ApprovalVerdict } from '../contracts/journal-entry.js';
import type { JsonObject } from '../contracts/json.js';
import type { Clock } from '../contracts/ports/system.port.js';
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
  const answer = await answered(rule, input, call, clock);
  if (answer === false) return null;
  if (answer === SLOW) return asking('its approval rule did not answer in time');
  return verdictOf(answer);
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
  const read = readAnswer<ApprovalRequirement>(answer, {
    reason: optional((reason) => typeof reason === 'string'),
    risk: optional((risk) => typeof risk === 'string'),
    approverRole: optional(isText),
    expiresIn: (expiresIn) => expiresIn == null || expiresIn === 'never' || millisecondsOf(expiresIn) !== null,
  });
  if (!read) return askingFor(answer);
  const { expiresIn, ...verdict } = read;
  return {
    ...verdict,
    ...(expiresIn != null && { expiresInMs: expiresIn === 'never' ? null : millisecondsOf(expiresIn) }),
  };
}

function millisecondsOf(duration: unknown): number | null {
  try {
    return parseDuration(duration as Duration, 'expiresIn');
  } catch {
    return null;
  }
}

/** A role that is no text is one that nobody holds: what the rule demanded must not become a demand for anybody. */
function askingFor(answer: unknown): ApprovalVerdict {
  const verdict = asking('its approval rule answered neither a boolean nor a requirement');
  const role: unknown = (answer as Partial<ApprovalRequirement> | null | undefined)?.approverRole;
  return role === undefined ? verdict : { ...verdict, approverRole: typeof role === 'string' ? role : '(unreadable)' };
}

function asking(reason: string): ApprovalVerdict {
  return { reason: `A person must decide because ${reason}.` };
}
