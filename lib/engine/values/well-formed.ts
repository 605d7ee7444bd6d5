/**
 * Well-formed UTF-16 for what leaves the process towards a provider: strict providers refuse a lone surrogate with a
 * 400 for the rest of the session. Stored values are never changed by this; the copy on its way out is.
 */
import type { JsonValue } from '../../contracts/json.js';

/** ECMAScript 2024, on every supported Node; not yet in the `lib` this package compiles against. */
interface Utf16Text {
  isWellFormed(): boolean;
  toWellFormed(): string;
}

/** The text with each lone surrogate replaced by U+FFFD; the same text when there is none. */
export function wellFormedText(text: string): string {
  const utf16 = text as unknown as Utf16Text;
  return utf16.isWellFormed() ? text : utf16.toWellFormed();
}

export function isWellFormedText(text: string): boolean {
  return (text as unknown as Utf16Text).isWellFormed();
}

/**
 * A JSON value whose texts and keys are all well-formed. Returns the value itself when nothing needs changing, else a
 * copy that shares the untouched parts. Keys that become equal: the last one wins. A `__proto__` key stays an own key.
 */
export function wellFormedJson<T extends JsonValue>(value: T): T {
  return repaired(value) as T;
}

function repaired(value: JsonValue): JsonValue {
  if (typeof value === 'string') return wellFormedText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map(repaired);
    return items.some((item, index) => item !== value[index]) ? items : value;
  }
  const entries = Object.keys(value).map(
    (key) => [wellFormedText(key), repaired(value[key] as JsonValue), key] as const,
  );
  if (entries.every(([key, item, original]) => key === original && item === value[original])) return value;
  // Object.fromEntries defines properties; an assignment would set the prototype for `__proto__`.
  return Object.fromEntries(entries);
}
