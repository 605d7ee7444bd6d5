/** A `doGenerate` result as our reply: normalised parts, finish reason and usage; nothing of request and response bodies or headers. */
import type { JsonObject } from '../../contracts/json.js';
import type { FilePart } from '../../contracts/message.js';
import type { ModelReply, ModelReplyCall, ModelReplyPart } from '../../contracts/ports/model-client.port.js';
import { finishReasonFromAiSdk } from './finish-reason-from-ai-sdk.js';
import { jsonCopy } from './json-copy.js';
import { opaqueFromAiSdk } from './opaque-part.js';
import { UnusableReply } from './unusable-reply.js';
import { usageFromAiSdk } from './usage-from-ai-sdk.js';

/** @throws UnusableReply when the object is no result */
export function replyFromAiSdk(result: unknown, provider: string): ModelReply {
  const { content, finishReason, usage } = (result ?? {}) as Record<string, unknown>;
  if (!Array.isArray(content)) throw new UnusableReply('it has no content');
  return {
    content: content.flatMap((part: unknown) => partFromAiSdk(part, provider) ?? []),
    finishReason: finishReasonFromAiSdk(finishReason),
    usage: usageFromAiSdk(usage),
  };
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
    argumentsText: typeof input === 'string' ? input : (JSON.stringify(input) ?? ''),
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
