import type { JsonObject } from '../../contracts/json.js';
import type { FilePart } from '../../contracts/message.js';
import type { ModelReply, ModelReplyCall, ModelReplyPart } from '../../contracts/ports/model-client.port.js';
import { endingFromAiSdk } from './finish-reason-from-ai-sdk.js';
import { jsonCopy } from './json-copy.js';
import { thrownProperty } from '../../engine/values/thrown-value.js';
import { opaqueFromAiSdk } from './opaque-part.js';
import { UnusableReply } from './unusable-reply.js';
import { usageFromAiSdk } from './usage-from-ai-sdk.js';

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
