import type { JsonObject } from '../../contracts/json.js';
import type { FilePart } from '../../contracts/message.js';
import type { ModelReply, ModelReplyCall, ModelReplyPart } from '../../contracts/ports/model-client.port.js';
import { endingFromAiSdk } from './finish-reason-from-ai-sdk.js';
import { jsonCopy, opaqueFromAiSdk } from './opaque-part.js';
import { thrownProperty } from '../../engine/values/recorded-error.js';
import type { Usage } from '../../contracts/operation.js';

/** What is done about a reply whose provider gives no finish reason. */
export type MissingFinishReason = 'fail' | 'accept';

/**
 * A `doGenerate` result as our reply: normalised parts, finish reason and usage; nothing of request and response bodies or headers.
 * @throws UnusableReply when the object is no result
 */
export function replyFromAiSdk(result: unknown, provider: string, missing: MissingFinishReason = 'fail'): ModelReply {
  const { content, finishReason, usage, response } = (result ?? {}) as Record<string, unknown>;
  if (!Array.isArray(content)) throw new UnusableReply('it has no content');
  const parts = content.flatMap((part: unknown) => partFromAiSdk(part, provider) ?? []);
  const choice = firstChoice(response);
  const { reason, word } = endingFromAiSdk(finishReason, choice?.['finish_reason']);
  const reply = { content: parts, finishReason: reason, usage: usageFromAiSdk(usage) };
  if (reason === 'stop' || reason === 'tool-calls') return reply;
  if (reason !== 'unknown') return { ...reply, ...detailOf(word, choice) };
  // The body was parsed, so the reply has arrived whole: its content says how it ended.
  // The `unknown` of v2 may also be a word that its package does not tell: without the body nobody knows.
  if (missing === 'accept' && (typeof finishReason !== 'string' || choice !== undefined))
    return { ...reply, finishReason: parts.some(({ type }) => type === 'tool-call') ? 'tool-calls' : 'stop' };
  const finishDetail =
    "the provider gave no finish reason; where it never does, say missingFinishReason: 'accept' to aiSdkModel";
  return { ...reply, finishDetail };
}

/** The provider's word, and the error that some gateways put beside it when their upstream broke off. */
function detailOf(word: string | undefined, choice: Record<string, unknown> | undefined): { finishDetail?: string } {
  if (word === undefined) return {};
  const message = thrownProperty(choice?.['error'], 'message');
  return { finishDetail: typeof message === 'string' && message !== '' ? `${word}: ${message}` : word };
}

/** Of an OpenAI-like body, where the SDK hands it out. */
function firstChoice(response: unknown): Record<string, unknown> | undefined {
  const choices = thrownProperty(thrownProperty(response, 'body'), 'choices');
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return typeof choice === 'object' && choice !== null ? (choice as Record<string, unknown>) : undefined;
}

function partFromAiSdk(part: unknown, provider: string): ModelReplyPart | null {
  if (typeof part !== 'object' || part === null) return null;
  const fields = part as Record<string, unknown>;
  const options = optionsOf(fields['providerMetadata']);
  switch (fields['type']) {
    case 'text':
    case 'reasoning': {
      const text = typeof fields['text'] === 'string' ? fields['text'] : '';
      return text === '' && options === undefined ? null : { type: fields['type'], text, ...withOptions(options) };
    }
    case 'file':
      return filePart(fields, options) ?? opaqueFromAiSdk(part, provider);
    case 'tool-call':
      return fields['providerExecuted'] === true ? opaqueFromAiSdk(part, provider) : toolCall(fields, options);
    default:
      return opaqueFromAiSdk(part, provider);
  }
}

function toolCall(fields: Record<string, unknown>, options: JsonObject | undefined): ModelReplyCall {
  const { toolCallId, toolName, input } = fields;
  return {
    type: 'tool-call',
    callId: typeof toolCallId === 'string' ? toolCallId : '',
    name: typeof toolName === 'string' ? toolName : '',
    argumentsText: typeof input === 'string' ? input : input === null ? '' : (JSON.stringify(input) ?? ''),
    ...withOptions(options),
  };
}

/** A generated file: base64 text or bytes, bare (v2, v3) or tagged (v4). */
function filePart(fields: Record<string, unknown>, options: JsonObject | undefined): FilePart | null {
  const { mediaType, data } = fields;
  if (typeof mediaType !== 'string') return null;
  const tagged =
    typeof data === 'object' && data !== null && 'type' in data ? (data as Record<string, unknown>) : { data };
  const bytes = tagged['data'];
  const part: FilePart = { type: 'file', mediaType, ...withOptions(options) };
  if (typeof bytes === 'string') return { ...part, data: bytes };
  if (ArrayBuffer.isView(bytes))
    return { ...part, data: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64') };
  return tagged['url'] === undefined ? null : { ...part, url: String(tagged['url']) };
}

function optionsOf(metadata: unknown): JsonObject | undefined {
  const copy = jsonCopy(metadata);
  return typeof copy === 'object' && copy !== null && !Array.isArray(copy) && Object.keys(copy).length > 0
    ? copy
    : undefined;
}

function withOptions(options: JsonObject | undefined): { providerOptions?: JsonObject } {
  return options === undefined ? {} : { providerOptions: options };
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Token numbers of one reply: flat in v2, nested in v3 and v4. What a provider did not report stays unknown; what is
 * no count (negative, text, NaN) counts as not reported. Cached input is a part of the input, reasoning a part of the
 * output: providers that report them beside instead of inside are recognised where the numbers show it.
 */
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

/** The SDK returned something that is no reply. The message says what is missing and repeats nothing of it. */
export class UnusableReply extends Error {
  override readonly name = 'UnusableReply';
}
