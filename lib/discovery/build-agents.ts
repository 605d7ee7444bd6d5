/** From what the explorer found to agent definitions; everything wrong with them becomes a problem. */
import type { AgentDefinition, Instructions } from '../contracts/agent-definition.js';
import { isIdentifier } from '../contracts/text.js';
import type { ModelClient } from '../contracts/ports/model-client.port.js';
import { DEFAULT_RETRY_POLICY, type RetryPolicy } from '../contracts/policies.js';
import type { AgentLimits, AgentOptions, ModelRetryOptions } from '../decorators/agent.options.js';
import type { RegisteredAgent } from './agent.registry.js';
import { checkModelSettings, checkToolChoice } from './check-model-settings.js';
import { definitionHash } from './definition-hash.js';
import { compareVersions, isDottedVersion } from './dotted-version.js';
import { checkCount, checkDuration, checkKeys, checkOneOf, shown } from './option-checks.js';
import type { ProblemList } from './problem-list.js';
import type { ToolStock } from './registered-tool.js';
import type { ExploredAgent } from './registration.explorer.js';
import type { RegistrationSettings } from './registration-settings.js';
import { selectTools } from './tool-selection.js';

export const AGENT_LIMIT_KEYS: readonly (keyof AgentLimits)[] = [
  'model',
  'maxTurns',
  'modelRetry',
  'toolConcurrency',
  'modelTimeout',
  'maxDuration',
  'sessionMode',
  'definitionChange',
  'truncatedCalls',
  'allowEmptyAnswer',
  'approvalMode',
  'modelSettings',
];
const OPTION_KEYS: readonly (keyof AgentOptions)[] = [
  'name',
  'version',
  'instructions',
  'tools',
  'toolChoice',
  ...AGENT_LIMIT_KEYS,
];
const RETRY_KEYS: readonly (keyof ModelRetryOptions)[] = ['maxAttempts', 'initialDelay', 'maxDelay', 'maxRetryAfter'];

const NO_PERSISTENCE = 'Runs have no persistence for it, so it would be lost by a restart.';
/** What other frameworks have and a durable run has no record of. */
const REFUSED: Readonly<Record<string, string>> = {
  memory: NO_PERSISTENCE,
  middleware: NO_PERSISTENCE,
  modelMiddleware: NO_PERSISTENCE,
  providerTools: 'Tools that the provider executes itself have no journal entry of ours.',
  activeTools: 'The tools of an agent are fixed at boot and part of its hash.',
  prepareStep: 'The tools of an agent are fixed at boot and part of its hash.',
};

export const MODEL_TIMEOUT_MS = 600_000;
const TOOL_CONCURRENCY = 8;
const MAX_TURNS = 20;

export function buildAgents(
  explored: readonly ExploredAgent[],
  tools: ToolStock,
  settings: RegistrationSettings,
  problems: ProblemList,
): RegisteredAgent[] {
  const agents: RegisteredAgent[] = [];
  for (const { classRef, options } of explored) {
    const definition = buildAgent(classRef.name, options, tools, settings, problems);
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
  settings: RegistrationSettings,
  problems: ProblemList,
): AgentDefinition | undefined {
  if (typeof options !== 'object' || options === null || !isIdentifier(options.name)) {
    problems.add(
      `${className}: the agent name ${shown((options as Partial<AgentOptions> | undefined)?.name)} is not allowed. Use 1-128 characters of A-Z a-z 0-9 . _ : -`,
    );
    return undefined;
  }
  const { name, version, instructions } = options;
  const what = `Agent ${name} (${className})`;
  checkKeys(options, OPTION_KEYS, what, problems, REFUSED);
  const hasInstructions = isInstructions(instructions);
  if (!hasInstructions) problems.add(`${what} has no instructions. Give a text, or a function that returns one.`);
  const hasVersion = checkVersion(version, what, problems);
  const chosen = selectTools(checkTools(options, what, problems), tools, what, problems);
  const limits: AgentLimits = {
    ...settings.defaults,
    ...withoutUndefined(options),
    ...(isObject(options.modelSettings) && {
      modelSettings: { ...settings.defaults.modelSettings, ...withoutUndefined(options.modelSettings) },
    }),
    ...(isObject(options.modelRetry) && { modelRetry: { ...settings.defaults.modelRetry, ...options.modelRetry } }),
  };
  const modelName = limits.model ?? 'default';
  const model = checkModel(modelName, settings.models, what, problems);
  const checked = checkLimits(limits, what, problems);
  const definitions = chosen.map(({ definition }) => definition);
  const toolNames = definitions.map((tool) => tool.name);
  const toolChoice = checkToolChoice(options.toolChoice, toolNames, what, problems);
  if (!hasVersion || model === undefined || !hasInstructions) return undefined;
  const behaviour = { instructions, modelName, tools: definitions, ...(toolChoice && { toolChoice }) };
  const { modelSettings } = checked;
  const hash = definitionHash({ ...behaviour, ...(modelSettings && { modelSettings }) }, settings.digester);
  return { name, version, hash, model, ...behaviour, ...checked };
}

function isInstructions(given: unknown): given is Instructions {
  return typeof given === 'function' || (typeof given === 'string' && given.trim() !== '');
}

function checkVersion(version: unknown, what: string, problems: ProblemList): boolean {
  if (isDottedVersion(version)) return true;
  problems.add(
    version === undefined || version === ''
      ? `${what} has no version. Say version: '1'; runs are bound to it.`
      : `${what}: version ${shown(version)} is not allowed. Use dotted integers such as '1' or '2.10'.`,
  );
  return false;
}

function checkTools(
  { tools = [] }: AgentOptions,
  what: string,
  problems: ProblemList,
): NonNullable<AgentOptions['tools']> {
  if (Array.isArray(tools)) return tools as NonNullable<AgentOptions['tools']>;
  problems.add(`${what}: tools is ${shown(tools)}; it must be a list. Lists made at run time are not supported.`);
  return [];
}

function checkModel(
  name: unknown,
  models: Readonly<Record<string, ModelClient>>,
  what: string,
  problems: ProblemList,
): ModelClient | undefined {
  if (typeof name === 'string' && Object.hasOwn(models, name)) return models[name];
  problems.add(
    `${what} uses the model ${shown(name)}, which does not exist. Models given to AgentRunsModule: ${Object.keys(models).join(', ') || 'none'}.`,
  );
  return undefined;
}

type CheckedLimits = Omit<
  AgentDefinition,
  'name' | 'version' | 'hash' | 'instructions' | 'modelName' | 'model' | 'tools' | 'toolChoice'
>;

/** @param what the agent, or `defaults` */
export function checkLimits(limits: AgentLimits, what: string, problems: ProblemList): CheckedLimits {
  const modelSettings = checkModelSettings(limits.modelSettings, what, problems);
  return {
    ...(modelSettings && { modelSettings }),
    maxTurns: checkCount(limits.maxTurns, MAX_TURNS, `${what}: maxTurns`, problems),
    modelRetry: checkRetry(limits.modelRetry, what, problems),
    toolConcurrency: checkCount(limits.toolConcurrency, TOOL_CONCURRENCY, `${what}: toolConcurrency`, problems),
    modelTimeoutMs: checkDuration(limits.modelTimeout, MODEL_TIMEOUT_MS, `${what}: modelTimeout`, problems),
    maxDurationMs: checkDuration(limits.maxDuration, null, `${what}: maxDuration`, problems),
    sessionMode: checkOneOf(limits.sessionMode, ['serial', 'parallel'], 'serial', `${what}: sessionMode`, problems),
    definitionChange: checkOneOf(
      limits.definitionChange,
      ['block', 'accept'],
      'block',
      `${what}: definitionChange`,
      problems,
    ),
    truncatedCalls: checkOneOf(
      limits.truncatedCalls,
      ['fail', 'feedback'],
      'fail',
      `${what}: truncatedCalls`,
      problems,
    ),
    allowEmptyAnswer: checkOneOf(limits.allowEmptyAnswer, [true, false], false, `${what}: allowEmptyAnswer`, problems),
    approvalMode: checkOneOf(limits.approvalMode, ['ask', 'fail'], 'ask', `${what}: approvalMode`, problems),
  };
}

function checkRetry(retry: ModelRetryOptions | undefined, what: string, problems: ProblemList): RetryPolicy {
  if (retry === undefined) return { ...DEFAULT_RETRY_POLICY };
  if (!isObject(retry)) {
    problems.add(`${what}: modelRetry is ${shown(retry)}; it must be an object.`);
    return { ...DEFAULT_RETRY_POLICY };
  }
  checkKeys(retry, RETRY_KEYS, `${what}: modelRetry`, problems);
  const duration = (key: 'initialDelay' | 'maxDelay' | 'maxRetryAfter', fallback: number): number =>
    checkDuration(retry[key], fallback, `${what}: modelRetry.${key}`, problems);
  return {
    maxAttempts: checkCount(
      retry.maxAttempts,
      DEFAULT_RETRY_POLICY.maxAttempts,
      `${what}: modelRetry.maxAttempts`,
      problems,
    ),
    initialDelayMs: duration('initialDelay', DEFAULT_RETRY_POLICY.initialDelayMs),
    maxDelayMs: duration('maxDelay', DEFAULT_RETRY_POLICY.maxDelayMs),
    maxRetryAfterMs: duration('maxRetryAfter', DEFAULT_RETRY_POLICY.maxRetryAfterMs),
  };
}

/** An explicit `undefined` is no choice: it must not hide a default. */
function withoutUndefined<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
