/**
 * The hash over everything an agent's behaviour depends on, and over nothing that only limits it: raising a timeout must not strand runs.
 * Neither the order of tools nor that of keys and `required` lists matters.
 */
import type { Instructions, ToolDefinition } from '../contracts/agent-definition.js';
import type { JsonObject, JsonValue } from '../contracts/json.js';
import type { Digester } from '../contracts/ports/system.port.js';
import type { ModelSettings, ToolChoice } from '../contracts/ports/model-client.port.js';

export interface HashedAgent {
  instructions: Instructions;
  modelName: string;
  modelSettings?: ModelSettings;
  toolChoice?: ToolChoice;
  tools: readonly Omit<ToolDefinition, 'caller' | 'timeoutMs' | 'transactionTimeoutMs'>[];
}

export function definitionHash(agent: HashedAgent, digester: Digester): string {
  const tools = agent.tools
    .map(({ name, version, description, recovery, approval, inputSchema, outputSchema }) => ({
      tool: `${name}@${version}`,
      description,
      recovery,
      approval,
      input: withSortedRequired(inputSchema),
      output: withSortedRequired(outputSchema),
    }))
    .sort((a, b) => (a.tool < b.tool ? -1 : 1));
  const { maxOutputTokens: _limit, ...settings } = agent.modelSettings ?? {};
  return digester.digest(
    digester.canonical({
      // A function has no text that means the same after another build; what it returned is in the journal of each run.
      instructions: typeof agent.instructions === 'string' ? agent.instructions : { function: true },
      model: agent.modelName,
      tools,
      ...(Object.keys(settings).length > 0 && { settings }),
      ...(agent.toolChoice && { toolChoice: agent.toolChoice }),
    }),
  );
}

/** `required` is a set in JSON Schema; generators list it in the order of declaration. */
function withSortedRequired(schema: JsonValue): JsonValue {
  if (Array.isArray(schema)) return schema.map(withSortedRequired);
  if (typeof schema !== 'object' || schema === null) return schema;
  const sorted: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    const isNameList = key === 'required' && Array.isArray(value) && value.every((item) => typeof item === 'string');
    sorted[key] = isNameList ? [...value].sort() : withSortedRequired(value);
  }
  return sorted;
}
