import type { AgentDefinition, Instructions, ToolDefinition } from '../contracts/agent-definition.js';
import { isIdentifier } from '../contracts/text.js';
import type { ModelClient, ModelSettings, ToolChoice } from '../contracts/ports/model-client.port.js';
import { formatValue } from '../contracts/read-options.js';
import type { AgentOptions } from '../decorators/agent.options.js';
import type { RegisteredAgent } from './agent.registry.js';
import { type ReadDefaults, readAgentLimits, readDefaults, readToolChoice } from './agent-options.js';
import { compareVersions, isDottedVersion } from './dotted-version.js';
import type { ProblemList } from './problem-list.js';
import { selectTools, type ToolCatalog } from './tool-catalog.js';
import type { ExploredAgent } from './registration.explorer.js';
import type { RegistrationSettings } from './registration-settings.js';
import type { JsonObject, JsonValue } from '../contracts/json.js';
import type { Digester } from '../contracts/ports/system.port.js';

/** Makes definitions of the agents that the explorer found; everything wrong with them becomes a problem. */
export function buildAgents(
  explored: readonly ExploredAgent[],
  tools: ToolCatalog,
  settings: RegistrationSettings,
  problems: ProblemList,
): RegisteredAgent[] {
  const defaults = readDefaults(settings.defaults, problems);
  const agents: RegisteredAgent[] = [];
  for (const { classRef, options } of explored) {
    const definition = buildAgent(classRef.name, options, tools, { ...settings, defaults }, problems);
    if (definition === undefined) continue;
    const twin = agents.find(
      ({ definition: other }) =>
        other.name === definition.name && compareVersions(other.version, definition.version) === 0,
    );
    if (twin) {
      problems.add(
        `Agent ${definition.name}@${definition.version} is registered twice: ${twin.classRef.name} and ${classRef.name}. Give one of them another version.`,
      );
    }
    agents.push({ classRef, definition });
  }
  return agents;
}

function buildAgent(
  className: string,
  options: AgentOptions,
  tools: ToolCatalog,
  settings: Omit<RegistrationSettings, 'defaults'> & { defaults: ReadDefaults },
  problems: ProblemList,
): AgentDefinition | undefined {
  if (typeof options !== 'object' || options === null || !isIdentifier(options.name)) {
    problems.add(
      `${className}: the agent name ${formatValue((options as Partial<AgentOptions> | undefined)?.name)} is not allowed. Use 1-128 characters of A-Z a-z 0-9 . _ : -`,
    );
    return undefined;
  }
  const { name, version, instructions } = options;
  const subject = `Agent ${name} (${className})`;
  const { modelName, ...limits } = readAgentLimits(options, settings.defaults, subject, problems);
  const hasInstructions = isInstructions(instructions);
  if (!hasInstructions) problems.add(`${subject} has no instructions. Give a text, or a function that returns one.`);
  const hasVersion = checkVersion(version, subject, problems);
  const chosen = selectTools(checkTools(options, subject, problems), tools, subject, problems);
  const model = checkModel(modelName, settings.models, subject, problems);
  const definitions = chosen.map(({ definition }) => definition);
  const toolNames = definitions.map((tool) => tool.name);
  const toolChoice = readToolChoice(options.toolChoice, toolNames, subject, problems);
  if (!hasVersion || model === undefined || !hasInstructions) return undefined;
  const behaviour = {
    instructions,
    modelName: modelName as string,
    tools: definitions,
    ...(toolChoice && { toolChoice }),
  };
  const { modelSettings } = limits;
  const hash = definitionHash({ ...behaviour, ...(modelSettings && { modelSettings }) }, settings.digester);
  return { name, version, hash, model, ...behaviour, ...limits };
}

function isInstructions(given: unknown): given is Instructions {
  return typeof given === 'function' || (typeof given === 'string' && given.trim() !== '');
}

function checkVersion(version: unknown, subject: string, problems: ProblemList): boolean {
  if (isDottedVersion(version)) return true;
  problems.add(
    version === undefined || version === ''
      ? `${subject} has no version. Say version: '1'; runs are bound to it.`
      : `${subject}: version ${formatValue(version)} is not allowed. Use dotted integers such as '1' or '2.10'.`,
  );
  return false;
}

function checkTools(
  { tools = [] }: AgentOptions,
  subject: string,
  problems: ProblemList,
): NonNullable<AgentOptions['tools']> {
  if (Array.isArray(tools)) return tools as NonNullable<AgentOptions['tools']>;
  problems.add(
    `${subject}: tools is ${formatValue(tools)}; it must be a list. Lists made at run time are not supported.`,
  );
  return [];
}

function checkModel(
  name: unknown,
  models: Readonly<Record<string, ModelClient>>,
  subject: string,
  problems: ProblemList,
): ModelClient | undefined {
  if (typeof name === 'string' && Object.hasOwn(models, name)) return models[name];
  problems.add(
    `${subject} uses the model ${formatValue(name)}, which does not exist. Models given to AgentRunsModule: ${Object.keys(models).join(', ') || 'none'}.`,
  );
  return undefined;
}

export interface HashedAgent {
  instructions: Instructions;
  modelName: string;
  modelSettings?: ModelSettings;
  toolChoice?: ToolChoice;
  tools: readonly Omit<ToolDefinition, 'caller' | 'timeoutMs' | 'transactionTimeoutMs'>[];
}

/**
 * The hash over everything an agent's behaviour depends on, and over nothing that only limits it: raising a timeout must not strand runs.
 * Neither the order of tools nor that of keys and `required` lists matters.
 */
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
