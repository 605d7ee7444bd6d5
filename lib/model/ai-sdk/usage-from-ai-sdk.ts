/**
 * Token numbers of one reply: flat in v2, nested in v3 and v4. What a provider did not report stays unknown; what is no count (negative, text,
 * NaN) counts as not reported. Cached input is a part of the input, reasoning a part of the output: providers that report them beside instead of inside
 * are recognised where the numbers show it.
 */
import type { Usage } from '../../contracts/operation.js';

type Fields = Readonly<Record<string, unknown>>;

export function usageFromAiSdk(usage: unknown): Usage {
  const fields = fieldsOf(usage);
  const isNested = typeof fields['inputTokens'] === 'object' || typeof fields['outputTokens'] === 'object';
  return isNested ? nestedUsage(fields) : flatUsage(fields);
}

function flatUsage(fields: Fields): Usage {
  const input = count(fields['inputTokens']);
  const cached = count(fields['cachedInputTokens']);
  const isBeside = cached !== undefined && input !== undefined && cached > input;
  return settled({
    input: isBeside ? input + cached : input,
    cached,
    output: count(fields['outputTokens']),
    reasoning: count(fields['reasoningTokens']),
    total: isBeside ? undefined : count(fields['totalTokens']),
  });
}

function nestedUsage(fields: Fields): Usage {
  const raw = typeof fields['raw'] === 'object' && fields['raw'] !== null ? fields['raw'] : undefined;
  const input = fieldsOf(fields['inputTokens']);
  const output = fieldsOf(fields['outputTokens']);
  const cached = reported(input['cacheRead'], raw, /cach/i);
  return settled({
    input: nestedInput(reported(input['total'], raw, /^(?!.*cach).*(?:prompt|input)/i), input, cached),
    cached,
    output: reported(output['total'], raw, /completion|output|candidate|generat/i) ?? nestedOutput(output),
    reasoning: reported(output['reasoning'], raw, /reason|thought|thinking/i),
    total: undefined,
  });
}

/** By its parts; two zeros are no report. */
function nestedOutput(output: Fields): number | undefined {
  return sum(count(output['text']), count(output['reasoning'])) || undefined;
}

function nestedInput(total: number | undefined, input: Fields, cached: number | undefined): number | undefined {
  const fresh = count(input['noCache']);
  const beside = (cached ?? 0) + (count(input['cacheWrite']) ?? 0);
  if (total === undefined) return fresh === undefined || fresh + beside === 0 ? undefined : fresh + beside;
  const isBeside = cached !== undefined && cached > 0 && (cached > total || fresh === total);
  return isBeside ? total + beside : total;
}

interface Numbers {
  input: number | undefined;
  cached: number | undefined;
  output: number | undefined;
  reasoning: number | undefined;
  total: number | undefined;
}

function settled({ input, cached, output, reasoning, total }: Numbers): Usage {
  const wholeOutput =
    output !== undefined && reasoning !== undefined && reasoning > output ? output + reasoning : output;
  const usage: Usage = {};
  if (input !== undefined) usage.inputTokens = input;
  if (cached !== undefined) usage.cachedInputTokens = cached;
  if (wholeOutput !== undefined) usage.outputTokens = wholeOutput;
  if (reasoning !== undefined) usage.reasoningTokens = reasoning;
  const sumOrReported = total ?? sum(input, wholeOutput);
  if (sumOrReported !== undefined) usage.totalTokens = sumOrReported;
  return usage;
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? Math.round(value) : undefined;
}

function sum(left: number | undefined, right: number | undefined): number | undefined {
  return left === undefined || right === undefined ? undefined : left + right;
}

/**
 * Some provider packages write 0 for a number the provider left out or named otherwise. Where the provider's own record is at hand (`raw`), a zero
 * counts only if that record has such a zero.
 */
function reported(value: unknown, raw: object | undefined, name: RegExp): number | undefined {
  const number = count(value);
  return number === 0 && raw !== undefined && !hasZero(raw, name, 3) ? undefined : number;
}

function hasZero(record: object, name: RegExp, depth: number): boolean {
  return Object.entries(record).some(([key, value]: [string, unknown]) =>
    typeof value === 'object' && value !== null
      ? depth > 1 && hasZero(value, name, depth - 1)
      : value === 0 && name.test(key),
  );
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}
