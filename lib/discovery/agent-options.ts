import type { AgentDefinition } from '../contracts/agent-definition.js';
import { isRecord, type JsonObject } from '../contracts/json.js';
import type { ModelSettings, ToolChoice } from '../contracts/ports/model-client.port.js';
import { formatValue, readOptions } from '../contracts/read-options.js';
import { DEFAULT_RETRY_POLICY } from '../contracts/policies.js';
import {
  anything,
  duration,
  type Field,
  field,
  type FieldsOf,
  flag,
  type Given,
  object,
  oneOf,
  wholeNumber,
} from '../contracts/schema.js';
import type { AgentLimits, AgentOptions, ModelRetryOptions } from '../decorators/agent.options.js';
import type { ProblemList } from './problem-list.js';
import type { AgentDefaults } from './registration-settings.js';

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

const finite = field<number>('a number', Number.isFinite);

const providerOptions: Field<Record<string, JsonObject>> = {
  doc: {},
  read: (value, report) =>
    isPlain(value) && Object.values(value).every((options) => isPlain(options) && isJson(options))
      ? (value as Record<string, JsonObject>)
      : report('must have an object of JSON values for each provider'),
};

const MODEL_SETTINGS = object({
  maxOutputTokens: wholeNumber(),
  temperature: finite,
  topP: finite,
  topK: finite,
  presencePenalty: finite,
  frequencyPenalty: finite,
  seed: field<number>('a whole number', Number.isSafeInteger),
  stopSequences: field<string[]>(
    'a list of texts',
    (value) => Array.isArray(value) && value.every((text) => typeof text === 'string' && text !== ''),
  ),
  providerOptions,
} satisfies FieldsOf<ModelSettings>);

const MODEL_RETRY = object({
  maxAttempts: wholeNumber(),
  initialDelay: duration,
  maxDelay: duration,
  maxRetryAfter: duration,
} satisfies FieldsOf<ModelRetryOptions>);

const LIMITS = {
  model: anything(),
  maxTurns: wholeNumber(),
  modelRetry: MODEL_RETRY,
  toolConcurrency: wholeNumber(),
  modelTimeout: duration,
  maxDuration: duration,
  sessionMode: oneOf(['serial', 'parallel']),
  definitionChange: oneOf(['block', 'accept']),
  truncatedCalls: oneOf(['fail', 'feedback']),
  allowEmptyAnswer: flag(),
  approvalMode: oneOf(['ask', 'fail']),
  modelSettings: MODEL_SETTINGS,
} satisfies FieldsOf<AgentLimits>;

const DEFAULTS = object({ ...LIMITS, toolTimeout: duration } satisfies FieldsOf<AgentDefaults>);

/** What is not read here has problems with words of their own. */
const AGENT = object({
  name: anything(),
  version: anything(),
  instructions: anything(),
  tools: anything(),
  toolChoice: anything(),
  ...LIMITS,
} satisfies Record<keyof AgentOptions, Field<unknown>>);

export type ReadDefaults = Given<typeof DEFAULTS.fields>;

export function readDefaults(defaults: AgentDefaults, problems: ProblemList): ReadDefaults {
  return readOptions(DEFAULTS, defaults, { subject: 'defaults' }, problems);
}

type Limits = Omit<
  AgentDefinition,
  'name' | 'version' | 'hash' | 'instructions' | 'modelName' | 'model' | 'tools' | 'toolChoice'
> & { modelName: unknown };

/** The limits of an agent: its own, else the defaults, else ours. */
export function readAgentLimits(
  options: AgentOptions,
  defaults: ReadDefaults,
  subject: string,
  problems: ProblemList,
): Limits {
  const given = readOptions(AGENT, options, { subject, refused: REFUSED }, problems);
  const limits = { ...defaults, ...given };
  const modelSettings: ModelSettings = { ...defaults.modelSettings, ...given.modelSettings };
  const retry = { ...defaults.modelRetry, ...given.modelRetry };
  return {
    ...(Object.keys(modelSettings).length > 0 && { modelSettings }),
    modelName: limits.model ?? 'default',
    maxTurns: limits.maxTurns ?? MAX_TURNS,
    modelRetry: {
      maxAttempts: retry.maxAttempts ?? DEFAULT_RETRY_POLICY.maxAttempts,
      initialDelayMs: retry.initialDelay ?? DEFAULT_RETRY_POLICY.initialDelayMs,
      maxDelayMs: retry.maxDelay ?? DEFAULT_RETRY_POLICY.maxDelayMs,
      maxRetryAfterMs: retry.maxRetryAfter ?? DEFAULT_RETRY_POLICY.maxRetryAfterMs,
    },
    toolConcurrency: limits.toolConcurrency ?? TOOL_CONCURRENCY,
    modelTimeoutMs: limits.modelTimeout ?? MODEL_TIMEOUT_MS,
    maxDurationMs: limits.maxDuration ?? null,
    sessionMode: limits.sessionMode ?? 'serial',
    definitionChange: limits.definitionChange ?? 'block',
    truncatedCalls: limits.truncatedCalls ?? 'fail',
    allowEmptyAnswer: limits.allowEmptyAnswer ?? false,
    approvalMode: limits.approvalMode ?? 'ask',
  };
}

export function readToolChoice(
  given: unknown,
  toolNames: readonly string[],
  subject: string,
  problems: ProblemList,
): ToolChoice | undefined {
  if (given === undefined) return undefined;
  const named = isPlain(given) && Object.keys(given).join() === 'tool' ? given['tool'] : undefined;
  const isKnown = given === 'auto' || given === 'none' || (given === 'required' && toolNames.length > 0);
  if (isKnown || toolNames.includes(named as string)) return given as ToolChoice;
  problems.add(
    `${subject}: toolChoice is ${formatValue(given)}; it must be 'auto', 'none', 'required' or { tool } with one of its tools: ${toolNames.join(', ') || 'it has none'}.`,
  );
  return undefined;
}

function isPlain(value: unknown): value is Record<string, unknown> {
  if (!isRecord(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** What the definition hash can see: it would not notice a function or a Date. */
function isJson(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isJson);
  if (isPlain(value)) return Object.values(value).every(isJson);
  return value === null || typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value);
}
