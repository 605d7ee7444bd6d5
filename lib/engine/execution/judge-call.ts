/**
 * What the host's own code says about a call before it is begun: whether its arguments are valid, and whether a person must decide (PPL-1a). Host code gets
 * copies, so that it cannot rewrite what was said, and its failure is an answer: of a validator a refusal, of a rule the demand for a person.
 */
import type { ApprovalVerdict } from '../../contracts/journal-entry.js';
import type { JsonObject } from '../../contracts/json.js';
import type { ParsedArguments, ToolCaller } from '../../contracts/ports/tool-caller.port.js';
import type { ToolDefinition } from '../../contracts/tool-definition.js';
import { recordedError } from '../values/recorded-error.js';

export async function parseCall(tool: ToolDefinition, args: JsonObject): Promise<ParsedArguments> {
  try {
    return await tool.caller.parse(structuredClone(args));
  } catch (error) {
    return { ok: false, problems: [recordedError(error, 'INVALID_ARGUMENTS').message] };
  }
}

/** Null when nobody needs to decide. */
export async function approvalOf(
  tool: ToolDefinition,
  input: JsonObject,
  call: Parameters<ToolCaller['approval']>[1],
): Promise<ApprovalVerdict | null> {
  try {
    return await tool.caller.approval(structuredClone(input), call);
  } catch {
    return { reason: 'The approval rule failed, so a person must decide.' };
  }
}
