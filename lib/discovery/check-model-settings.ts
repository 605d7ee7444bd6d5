import type { ModelSettings, ToolChoice } from '../contracts/ports/model-client.port.js';
import { checkKeys, shown } from './option-checks.js';
import type { ProblemList } from './problem-list.js';

type Check = [fits: (value: unknown) => boolean, wanted: string];

const NUMBER: Check = [Number.isFinite, 'must be a number'];
const CHECKS: Readonly<Record<keyof ModelSettings, Check>> = {
  maxOutputTokens: [
    (value) => Number.isSafeInteger(value) && (value as number) > 0,
    'must be a whole number of at least 1',
  ],
  temperature: NUMBER,
  topP: NUMBER,
  topK: NUMBER,
  presencePenalty: NUMBER,
  frequencyPenalty: NUMBER,
  seed: [Number.isSafeInteger, 'must be a whole number'],
  stopSequences: [
    (value) => Array.isArray(value) && value.every((text) => typeof text === 'string' && text !== ''),
    'must be a list of texts',
  ],
  providerOptions: [
    (value) => isPlain(value) && Object.values(value).every((options) => isPlain(options) && isJson(options)),
    'must have an object of JSON values for each provider',
  ],
};

/** @returns the settings, unset ones left out; undefined without any */
export function checkModelSettings(given: unknown, what: string, problems: ProblemList): ModelSettings | undefined {
  if (given === undefined) return undefined;
  if (!isPlain(given)) {
    problems.add(`${what}: modelSettings is ${shown(given)}; it must be an object.`);
    return undefined;
  }
  checkKeys(given, Object.keys(CHECKS), `${what}: modelSettings`, problems);
  const fit = Object.entries(given).filter(([key, value]) => {
    if (value === undefined || !Object.hasOwn(CHECKS, key)) return false;
    const [fits, wanted] = CHECKS[key as keyof ModelSettings];
    if (!fits(value)) problems.add(`${what}: modelSettings.${key} is ${shown(value)}; it ${wanted}.`);
    return fits(value);
  });
  return fit.length > 0 ? Object.fromEntries(fit) : undefined;
}

export function checkToolChoice(
  given: unknown,
  toolNames: readonly string[],
  what: string,
  problems: ProblemList,
): ToolChoice | undefined {
  if (given === undefined) return undefined;
  const named = isPlain(given) && Object.keys(given).join() === 'tool' ? given['tool'] : undefined;
  const isKnown = given === 'auto' || given === 'none' || (given === 'required' && toolNames.length > 0);
  if (isKnown || toolNames.includes(named as string)) return given as ToolChoice;
  problems.add(
    `${what}: toolChoice is ${shown(given)}; it must be 'auto', 'none', 'required' or { tool } with one of its tools: ${toolNames.join(', ') || 'it has none'}.`,
  );
  return undefined;
}

function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** What the definition hash can see: it would not notice a function or a Date. */
function isJson(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isJson);
  if (isPlain(value)) return Object.values(value).every(isJson);
  return value === null || typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value);
}
