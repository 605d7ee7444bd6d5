import type { Actor } from '../contracts/run.js';
import type { ApprovalVerdict } from '../contracts/journal-entry.js';
import { copyJson, hasAtMost, type JsonObject, type JsonValue } from '../contracts/json.js';
import type { Clock } from '../contracts/ports/system.port.js';
import type {
  InterruptedToolCall,
  ParsedArguments,
  ProbeResult,
  ToolCaller,
  ToolContext,
  ToolEntry,
} from '../contracts/ports/tool-caller.port.js';
import type { ApprovalRequirement, ApprovalRule } from '../decorators/agent-tool.options.js';
import { deepFreeze, findProtoKey, type ToolSchema } from './schema/tool-schema.js';
import type { ToolPipeline } from './tool-pipeline.js';
import { type Duration, parseDuration } from '../contracts/duration.js';
import { isText, optional, readAnswer } from '../contracts/ports/host.port.js';

/** Of an output that a person or a probe gave. */
const MAX_CHECKED_VALUES = 10_000;

export interface NestToolCallerParts {
  input: ToolSchema;
  /** Null: any result will do. */
  output: ToolSchema | null;
  pipeline: ToolPipeline;
  approval: boolean | ApprovalRule<JsonObject> | undefined;
  clock: Clock;
  probe: ((call: InterruptedToolCall) => unknown) | undefined;
}

/**
 * The way into a host's tool method (port ToolCaller): validation by the tool's schema, the approval rule, and the
 * call through the host's guards, pipes, interceptors and filters.
 */
export class NestToolCaller implements ToolCaller {
  /** The `@RecoverTool` method; undefined where there is none. */
  readonly probe?: (call: InterruptedToolCall) => Promise<ProbeResult>;

  constructor(private readonly parts: NestToolCallerParts) {
    const { probe } = parts;
    if (probe) this.probe = async (call) => (await probe(deepFreezeArguments(call))) as ProbeResult;
  }

  parse(args: JsonObject): ParsedArguments | Promise<ParsedArguments> {
    const proto = findProtoKey(args);
    if (proto !== undefined) return { ok: false, problems: [`${proto}: this name is not allowed`] };
    return this.parts.input.parse(args);
  }

  approval(
    input: JsonObject,
    call: { runId: string; callId: string; actor: Actor | null },
  ): Promise<ApprovalVerdict | null> {
    return askApprovalRule(this.parts.approval, input, call, this.parts.clock);
  }

  async call(input: JsonObject, context: ToolContext, entry: ToolEntry): Promise<unknown> {
    const { input: schema, pipeline } = this.parts;
    return pipeline.run({
      context: Object.isFrozen(context) ? context : frozenCopy(context),
      entry,
      input: await schema.revive(input, entry.given),
      shownInput: pipeline.isPlain ? undefined : await schema.revive(input, entry.given),
    });
  }

  checkOutput(output: JsonValue): string[] {
    const { output: schema } = this.parts;
    if (!schema) return [];
    if (!hasAtMost(MAX_CHECKED_VALUES, output)) return [`has more than ${MAX_CHECKED_VALUES} values to check`];
    try {
      return schema.check(output);
    } catch (error) {
      return [`the result could not be read (${nameOf(error)})`];
    }
  }
}

function frozenCopy(context: ToolContext): ToolContext {
  const prototype = Object.getPrototypeOf(context) as object;
  return Object.freeze(Object.create(prototype, Object.getOwnPropertyDescriptors(context))) as ToolContext;
}

function deepFreezeArguments(call: InterruptedToolCall): InterruptedToolCall {
  return Object.freeze({ ...call, arguments: deepFreeze(structuredClone(call.arguments)) });
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : 'not an error';
}

type AskedCall = Parameters<ApprovalRule<JsonObject>>[1];

/** How long a rule may take. */
export const APPROVAL_RULE_TIMEOUT_MS = 5_000;

const SLOW = Symbol('slow');

/**
 * Asks a tool's approval rule once. The rule gets frozen copies; one that answers nonsense or does not answer in time
 * asks a person, as the engine does when it throws, because a gate that fails must not open.
 */
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

/** What a `@RecoverTool` method answers. */

/** The call had its effect: `output` is recorded as its result. */
export function happened(output: unknown): ProbeResult {
  return { result: 'happened', output };
}

/** It did not: the call is executed again under the same `operationId`. */
export function didNotHappen(): ProbeResult {
  return { result: 'did-not-happen' };
}

/** Nobody can say: the run needs a person. */
export function outcomeUnknown(): ProbeResult {
  return { result: 'unknown' };
}
