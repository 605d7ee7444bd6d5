/** From what the explorer found to agent definitions; everything wrong with them becomes a problem. */
import type { AgentDefinition, Instructions } from '../contracts/agent-definition.js';
import { isIdentifier } from '../contracts/text.js';
import type { ModelClient } from '../contracts/ports/model-client.port.js';
import { formatValue } from '../contracts/read-options.js';
import type { AgentOptions } from '../decorators/agent.options.js';
import type { RegisteredAgent } from './agent.registry.js';
import { type ReadDefaults, readAgentLimits, readDefaults, readToolChoice } from './agent-options.js';
import { definitionHash } from './definition-hash.js';
import { compareVersions, isDottedVersion } from './dotted-version.js';
import type { ProblemList } from './problem-list.js';
import type { ToolStock } from './registered-tool.js';
import type { ExploredAgent } from './registration.explorer.js';
import type { RegistrationSettings } from './registration-settings.js';
import { selectTools } from './tool-selection.js';

export function buildAgents(
  explored: readonly ExploredAgent[],
  tools: ToolStock,
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
  tools: ToolStock,
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
