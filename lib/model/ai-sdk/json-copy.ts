import type { JsonValue } from '../../contracts/json.js';

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
