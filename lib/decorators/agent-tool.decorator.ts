import { SetMetadata } from '@nestjs/common';
import { AGENT_TOOL_METADATA } from './agent-runs-metadata.tokens.js';
import type { AgentToolOptions, ToolSchemaSource } from './agent-tool.options.js';

/**
 * Declares a method of a provider as a tool: `method(input, context: ToolContext)`.
 *
 * Guards, pipes, interceptors and filters of the class and the method apply, in an execution context of type `agent` with the arguments `[input, context]`;
 * global ones only with the module's `globalEnhancers`. A guard that was written for HTTP must not read the input as if it were a request: the model chooses
 * it. Who the run works for is `context.getArgByIndex(1).actor`.
 *
 * The method may return a value, a promise or an Observable (its last value is the result); streams are refused.
 */
export function AgentTool<const S extends ToolSchemaSource>(options: AgentToolOptions<S>): MethodDecorator {
  return SetMetadata(AGENT_TOOL_METADATA, options);
}
