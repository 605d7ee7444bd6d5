/** A copy with the values of the named keys replaced; the object itself where there is nothing to replace. */
export function redacted<T extends Record<string, unknown>>(fields: T, keys: readonly string[]): T {
  if (!keys.some((key) => Object.hasOwn(fields, key))) return fields;
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [key, keys.includes(key) ? '[redacted]' : value]),
  ) as T;
}
