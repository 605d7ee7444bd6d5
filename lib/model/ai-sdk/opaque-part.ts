import { isJsonObject, type JsonObject, type JsonValue } from '../../contracts/json.js';
import type { OpaquePart } from '../../contracts/message.js';
import type { AiSdkFileData, AiSdkPromptPart, AiSdkToolOutput } from './ai-sdk-types.js';

interface OpaqueValue extends JsonObject {
  provider: string;
  part: JsonObject;
}

/**
 * Parts that only their provider understands: calls it executed itself and their results, reasoning files, custom
 * blocks, sources. They are kept as the provider gave them, together with its name, are never run, and no result is
 * owed for them. Back to the same provider they go in the form its specification wants in an assistant message; to any
 * other provider they are left out as a whole, for it would take a foreign call for one of ours.
 *
 * A content part of a reply as an opaque part; null when it has no JSON form.
 */
export function opaqueFromAiSdk(part: object, provider: string): OpaquePart | null {
  const copy = jsonCopy(part);
  if (typeof copy !== 'object' || copy === null || Array.isArray(copy)) return null;
  return { type: 'opaque', value: { provider, part: copy } satisfies OpaqueValue };
}

/** The part for the next prompt; null for what is not sent back (sources, approval requests, preliminary results, other providers' parts). */
export function opaqueToAiSdk(
  value: JsonValue,
  target: { specification: string; provider: string },
): AiSdkPromptPart | null {
  if (!isOpaqueValue(value) || value.provider !== target.provider) return null;
  const { part } = value;
  const converted = promptPart(part, target.specification);
  const options = part['providerMetadata'];
  return converted === null || !isJsonObject(options) ? converted : { ...converted, providerOptions: options };
}

function promptPart(part: JsonObject, specification: string): AiSdkPromptPart | null {
  const { toolCallId, toolName, mediaType, kind } = part;
  switch (part['type']) {
    case 'tool-call':
      if (typeof toolCallId !== 'string' || typeof toolName !== 'string') return null;
      return { type: 'tool-call', toolCallId, toolName, input: parsedInput(part['input']), providerExecuted: true };
    case 'tool-result':
      if (typeof toolCallId !== 'string' || typeof toolName !== 'string' || part['preliminary'] === true) return null;
      return { type: 'tool-result', toolCallId, toolName, output: resultOutput(part) };
    case 'reasoning-file': {
      const data = fileData(part['data']);
      return specification === 'v4' && typeof mediaType === 'string' && data !== null
        ? { type: 'reasoning-file', mediaType, data }
        : null;
    }
    case 'custom':
      return specification === 'v4' && typeof kind === 'string' ? { type: 'custom', kind } : null;
    default:
      return null;
  }
}

function parsedInput(input: JsonValue | undefined): JsonValue {
  if (typeof input !== 'string') return input ?? {};
  try {
    return JSON.parse(input) as JsonValue;
  } catch {
    return input;
  }
}

function resultOutput(part: JsonObject): AiSdkToolOutput {
  const value = part['result'] ?? null;
  const isError = part['isError'] === true;
  if (typeof value === 'string') return { type: isError ? 'error-text' : 'text', value };
  return { type: isError ? 'error-json' : 'json', value };
}

function fileData(data: JsonValue | undefined): AiSdkFileData | null {
  if (!isJsonObject(data)) return null;
  if (data['type'] === 'data' && typeof data['data'] === 'string') return { type: 'data', data: data['data'] };
  return data['type'] === 'url' && typeof data['url'] === 'string' ? { type: 'url', url: new URL(data['url']) } : null;
}

function isOpaqueValue(value: JsonValue): value is OpaqueValue {
  return isJsonObject(value) && typeof value['provider'] === 'string' && isJsonObject(value['part']);
}

/** Bytes inside an opaque part as base64, the form in which the AI SDK takes them back. */
function bytesAsBase64(this: unknown, key: string, value: unknown): unknown {
  const original = (this as Record<string, unknown>)[key];
  return ArrayBuffer.isView(original)
    ? Buffer.from(original.buffer, original.byteOffset, original.byteLength).toString('base64')
    : value;
}

/** A detached copy of what a provider gave, key order and texts untouched; undefined when it is no JSON. */
export function jsonCopy(value: unknown): JsonValue | undefined {
  try {
    const text = JSON.stringify(value, bytesAsBase64) as string | undefined;
    return text === undefined ? undefined : (JSON.parse(text) as JsonValue);
  } catch {
    return undefined;
  }
}
