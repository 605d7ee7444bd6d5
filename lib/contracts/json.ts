/** The value domain of everything stored: RFC 8259 JSON, as JavaScript values. */
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;

export interface JsonObject {
  [key: string]: JsonValue;
}

/**
 * Whether a number is certainly the one that was written: beyond ±(2^53 − 1) JSON parsers round integers without a word, and what is too large for a double
 * becomes infinite. Fractions are taken as the nearest double, as everywhere.
 */
export function isExactNumber(value: number): boolean {
  return Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value);
}

/** Whether a JSON value holds at most so many values, itself and its containers counted. Looks at few more than that. */
export function hasAtMost(count: number, value: JsonValue): boolean {
  let left = count - 1;
  const open = [value];
  for (let next = open.pop(); next !== undefined && left >= 0; next = open.pop()) {
    if (typeof next !== 'object' || next === null) continue;
    const items = Object.values(next);
    left -= items.length;
    if (left >= 0) open.push(...items);
  }
  return left >= 0;
}
