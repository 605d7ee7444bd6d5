import type { RecoveryPolicy } from '../contracts/policies.js';
import { InvalidConfigurationError } from '../errors/configuration.errors.js';
import { AGENT_TOOL_METADATA } from './agent-runs-metadata.tokens.js';
import type { AgentToolDecorator, AgentToolOptions } from './agent-tool.options.js';
import { decorateMethod } from './decorate-method.js';
import type { ToolSchemaSource } from './tool-value.js';

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
