/** What a method gives to `context.requestApproval`, as the ask it becomes. Anything wrong with it is the method's mistake, told at once. */
import type { JsonObject } from '../../contracts/json.js';
import type { ApprovalRequest } from '../../contracts/ports/tool-caller.port.js';
import type { InteractionDraft } from '../interactions.js';
import { isBlankText } from '../../contracts/blank-text.js';
import { normaliseResult } from '../values/normalise-result.js';

const MAX_BYTES = 1_048_576;

/** @throws TypeError */
export function readApprovalRequest(
  request: ApprovalRequest,
  defaultExpiryMs: number | null,
): Omit<InteractionDraft, 'ordinal'> {
  const given = (typeof request === 'object' && request !== null ? request : {}) as Record<string, unknown>;
  const { reason, risk, approverRole, arguments: shown = {}, expiresInMs = defaultExpiryMs } = given;
  const problems: string[] = [];
  if (typeof reason !== 'string' || isBlankText(reason)) problems.push('reason must be text that is not blank');
  for (const [field, value] of Object.entries({ risk, approverRole }))
    if (value !== undefined && typeof value !== 'string') problems.push(`${field} must be text`);
  if (expiresInMs !== null && !(Number.isSafeInteger(expiresInMs) && (expiresInMs as number) > 0))
    problems.push('expiresInMs must be a whole number above 0, or null');
  const read = normaliseResult(shown, { maxBytes: MAX_BYTES });
  if (!read.ok) problems.push(`arguments have no JSON form: ${read.problem} at ${read.path}`);
  else if (typeof read.value !== 'object' || read.value === null || Array.isArray(read.value))
    problems.push('arguments must be an object');
  if (problems.length > 0 || !read.ok) throw new TypeError(`context.requestApproval: ${problems.join('; ')}`);
  return {
    kind: 'approval',
    arguments: read.value as JsonObject,
    questions: null,
    reason: reason as string,
    risk: (risk as string | undefined) ?? null,
    approverRole: (approverRole as string | undefined) ?? null,
    expiresInMs: expiresInMs as number | null,
  };
}
