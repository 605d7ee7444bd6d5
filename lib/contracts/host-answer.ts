/** Whether a field of an answer fits; undefined where it has none. */
export type FieldCheck = (value: unknown) => boolean;

export const isText: FieldCheck = (value) => typeof value === 'string' && value.trim() !== '';
export const optional =
  (check: FieldCheck): FieldCheck =>
  (value) =>
    value === undefined || check(value);

/**
 * What host code answered at a gate (a guardrail, a resolver, a probe, an approval rule, an authorizer), as a copy of
 * its fields; null for whatever is not exactly such an answer: no object, a field that does not fit or is not known, a
 * getter that throws. What null means is the gate's to say, and it never means open.
 */
export function readAnswer<T>(answer: unknown, fields: { [Field in keyof T]-?: FieldCheck }): T | null {
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) return null;
  try {
    const copy = { ...answer } as Record<string, unknown>;
    const isKnown = Object.keys(copy).every((name) => Object.hasOwn(fields, name));
    const fits = Object.entries<FieldCheck>(fields).every(([name, check]) => check(copy[name]));
    return isKnown && fits ? (copy as T) : null;
  } catch {
    return null;
  }
}
