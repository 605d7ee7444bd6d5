/** The value domain of everything stored: RFC 8259 JSON, as JavaScript values. */
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  [key: string]: JsonValue;
}

/** An object that is no list. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The same of what is known to be JSON. */
export const isJsonObject = isRecord as (value: unknown) => value is JsonObject;

/**
 * Whether a number is certainly the one that was written: beyond ±(2^53 − 1) JSON parsers round integers without a
 * word, and what is too large for a double becomes infinite. Fractions are taken as the nearest double, as everywhere.
 */
export function isExactNumber(value: number): boolean {
  return Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value);
}

/**
 * Whether a JSON value holds at most so many values, itself and its containers counted. Looks at few more than that.
 */
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

/** A detached copy of a JSON value; own `__proto__` keys stay plain data. Recursive: nesting is bounded by the caller. */
export function copyJson<T extends JsonValue>(value: T): T {
  return copied(value) as T;
}

function copied(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(copied);
  const copy: JsonObject = {};
  for (const name in value) setOwn(copy, name, copied(value[name] as JsonValue));
  return copy;
}

/** Sets a property, whatever its name. */
export function setOwn(object: JsonObject, name: string, value: JsonValue): void {
  if (name !== '__proto__') object[name] = value;
  // An assignment would set the prototype.
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Whether two values are equal as JSON. The order of properties does not count; nesting is bounded by the caller. */
export function isSameJson(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const left = a as JsonObject;
  const right = b as JsonObject;
  const names = Object.keys(left);
  if (names.length !== Object.keys(right).length) return false;
  return names.every((name) => Object.hasOwn(right, name) && isSameJson(left[name], right[name]));
}

/**
 * What a value is once it has been through JSON, as results of tools and steps are: a `Date` is text, a missing
 * property stays missing, `undefined` alone is `null`. What has no JSON form (functions, maps, sets) is `never`, as a
 * property it is left out.
 */
export type JsonOf<T> = unknown extends T
  ? JsonValue
  : T extends JsonValue
    ? T
    : T extends undefined | void
      ? null
      : T extends bigint
        ? string
        : T extends Error
          ? { name: string; message: string }
          : T extends { toJSON(...args: never[]): infer Form }
            ? JsonOf<Form>
            : T extends Formless
              ? never
              : T extends readonly unknown[]
                ? { -readonly [I in keyof T]: JsonOf<T[I]> }
                : JsonPropertiesOf<T>;

type Formless =
  | symbol
  | RegExp
  | ReadonlyMap<unknown, unknown>
  | ReadonlySet<unknown>
  | PromiseLike<unknown>
  | ((...args: never[]) => unknown);

type JsonPropertiesOf<T> = {
  [K in keyof T as KeyIf<T, K, never>]: JsonOf<T[K]>;
} & {
  [K in keyof T as KeyIf<T, K, undefined>]?: JsonOf<Exclude<T[K], undefined>>;
} extends infer Properties
  ? { [K in keyof Properties]: Properties[K] }
  : never;

/** The key of a property with a JSON form, if it may be missing (`undefined`) or not (`never`). */
type KeyIf<T, K extends keyof T, Missing> = K extends symbol
  ? never
  : [Exclude<T[K], undefined>] extends [Formless]
    ? never
    : [Extract<T[K], undefined>] extends [Missing]
      ? [Missing] extends [Extract<T[K], undefined>]
        ? K
        : never
      : never;
