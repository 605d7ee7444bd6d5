import 'reflect-metadata';
import { SetMetadata } from '@nestjs/common';
import type { RecoveryPolicy } from '../contracts/policies.js';
import { InvalidConfigurationError } from '../errors/configuration.errors.js';
import { AGENT_TOOL_METADATA, DECORATED_METHODS_METADATA, RECOVER_TOOL_METADATA } from './metadata.accessor.js';
import type { AgentToolDecorator, AgentToolOptions } from './agent-tool.options.js';
import type { ToolSchemaSource } from './tool-value.js';
import type { InterruptedToolCall, ProbeResult } from '../contracts/ports/tool-caller.port.js';

/**
 * Declares a method of a provider as a tool: `method(input, context: ToolContext)`.
 *
 * Guards, pipes, interceptors and filters of the class and the method apply, in an execution context of type `agent` with the arguments `[input, context]`;
 * global ones only with the module's `globalEnhancers`. A guard that was written for HTTP must not read the input as if it were a request: the model chooses
 * it. Who the run works for is `context.getArgByIndex(1).actor`.
 *
 * The method may return a value, a promise or an Observable (its last value is the result); streams are refused.
 */
export function AgentTool<const S extends ToolSchemaSource, const R extends RecoveryPolicy = 'manual'>(
  options: AgentToolOptions<S, R>,
): AgentToolDecorator<S, R> {
  return (target, key, descriptor) => {
    if (!descriptor) throw new InvalidConfigurationError([`@AgentTool stands on ${String(key)}, which is no method.`]);
    decorateMethod(AGENT_TOOL_METADATA, options)(target, key, descriptor);
  };
}

/**
 * Declares a method of a provider as the probe of a tool with `recovery: 'probe'`: `method(call: InterruptedToolCall): ProbeResult`. It finds out whether an
 * interrupted call had its effect, changes nothing, and answers `happened(result)`, `didNotHappen()` or `outcomeUnknown()`. Enhancers do not apply to it.
 * @param tool the tool's name, for all its versions, or `name@version`
 */
export function RecoverTool(
  tool: string,
): <Probe extends (call: InterruptedToolCall) => ProbeResult | Promise<ProbeResult>>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<Probe>,
) => void {
  return decorateMethod(RECOVER_TOOL_METADATA, tool);
}

/** Writes metadata on a method as Nest does, and on its class that it did: a decorator above may replace the method, and with it all that was said about it. */
export function decorateMethod(
  token: symbol,
  value: unknown,
): (target: object, key: string | symbol, descriptor: PropertyDescriptor) => void {
  return (target, key, descriptor) => {
    SetMetadata(token, value)(target, key, descriptor);
    const known = (Reflect.getOwnMetadata(DECORATED_METHODS_METADATA, target) ?? []) as (string | symbol)[];
    Reflect.defineMetadata(DECORATED_METHODS_METADATA, [...known, key], target);
  };
}
