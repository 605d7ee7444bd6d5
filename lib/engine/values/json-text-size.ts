/** Sizes of JSON text without building it: what `JSON.stringify` would write, counted in UTF-8 bytes. */

/**
 * Bytes of a string as JSON text, quotes and escapes included. Stops counting beyond `limit`: the result is then merely
 * larger than it.
 */
export function jsonStringBytes(text: string, limit = Infinity): number {
  // Every UTF-16 unit costs at least a byte.
  if (text.length + 2 > limit) return text.length + 2;
  let bytes = 2;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit >= 0x20 && unit < 0x80) bytes += unit === 0x22 || unit === 0x5c ? 2 : 1;
    else if (unit < 0x20) bytes += SHORT_ESCAPES.has(unit) ? 2 : 6;
    else if (unit < 0x800) bytes += 2;
    else if (unit < 0xd800 || unit > 0xdfff) bytes += 3;
    else if (unit < 0xdc00 && isLowSurrogate(text.charCodeAt(index + 1))) {
      bytes += 4;
      index++;
    } else bytes += 6;
  }
  return bytes;
}

/**
 * Whether a text has more UTF-8 bytes than that. A UTF-16 unit is at most three of them, so that only a text near the
 * limit is measured.
 */
export function isLargerThan(text: string, maxBytes: number): boolean {
  return text.length * 3 > maxBytes && (text.length > maxBytes || new TextEncoder().encode(text).length > maxBytes);
}

/** \b \t \n \f \r */
const SHORT_ESCAPES: ReadonlySet<number> = new Set([0x08, 0x09, 0x0a, 0x0c, 0x0d]);

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
