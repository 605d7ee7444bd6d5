/**
 * The way into a host's tool method (port ToolCaller): validation by the tool's schema, the approval rule, and the call through the host's guards, pipes,
 * interceptors and filters.
 */
import type { Actor } from '../contracts/run.js';
import type { ApprovalVerdict } from '../contracts/journal-entry.js';
import { hasAtMost, type JsonObject, type JsonValue } from '../contracts/json.js';
import type { Clock } from '../contracts/ports/system.port.js';
import type {
  InterruptedToolCall,
  ParsedArguments,
  ProbeResult,
  ToolCaller,
  ToolContext,
  ToolEntry,
} from '../contracts/ports/tool-caller.port.js';
import type { ApprovalRule } from '../decorators/agent-tool.options.js';
import { askApprovalRule } from './approval-verdict.js';
import { deepFreeze, findProtoKey } from './schema/json-copy.js';
import type { ToolSchema } from './schema/tool-schema.js';
import type { ToolPipeline } from './tool-pipeline.js';

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

export class NestToolCaller implements ToolCaller {
  /** The `@RecoverTool` method; undefined where there is none. */
  readonly probe?: (call: InterruptedToolCall) => Promise<ProbeResult>;

  constructor(private readonly parts: NestToolCallerParts) {
    const { probe } = parts;
    if (probe) this.probe = async (call) => (await probe(deepFreezeArguments(call))) as ProbeResult;
  }

  async parse(args: JsonObject): Promise<ParsedArguments> {
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
      shownInput: await schema.revive(input, entry.given),
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
