import { isExactNumber, type JsonObject, type JsonValue } from '../../contracts/json.js';
import { MAX_JSON_DEPTH, pathText, type PathStep } from './json-path.js';

/** Values that the arguments of one call may hold, objects and lists counted. */
export const MAX_ARGUMENT_VALUES = 10_000;
/** Properties that one object among them may have: class-transformer's time grows with their square. */
export const MAX_OBJECT_KEYS = 1_000;

/** Why a number is not taken as it is. */
export const INEXACT_NUMBER = 'would be rounded (beyond ±(2^53 − 1)); give it as text';

/**
 * Why arguments are refused before a validator sees them; null when they are not. What would not come back from a
 * journal as it was (numbers beyond a double, rounded integers, too many levels) and what a validator might spend the
 * loop on. Settles -0 in place. Iterative, because JSON.parse accepts any depth; stops at the first problem.
 */
export function argumentsProblem(root: JsonObject): string | null {
  const open: { value: JsonObject | JsonValue[]; path: readonly PathStep[] }[] = [{ value: root, path: [] }];
  let left = MAX_ARGUMENT_VALUES;
  for (let place = open.pop(); place !== undefined; place = open.pop()) {
    const holder = place.value as Record<PathStep, JsonValue>;
    const steps = Array.isArray(place.value) ? [...place.value.keys()] : Object.keys(place.value);
    left -= steps.length;
    if (left <= 0) return `the arguments hold more than ${MAX_ARGUMENT_VALUES} values`;
    if (steps.length > MAX_OBJECT_KEYS && !Array.isArray(place.value))
      return `the object at ${pathText(place.path)} has more than ${MAX_OBJECT_KEYS} properties`;
    for (const step of steps) {
      const value = holder[step] as JsonValue;
      if (typeof value === 'number') {
        if (!isExactNumber(value)) return `the number at ${pathText([...place.path, step])} ${INEXACT_NUMBER}`;
        if (Object.is(value, -0)) holder[step] = 0;
      } else if (typeof value === 'object' && value !== null) {
        const path = [...place.path, step];
        if (path.length >= MAX_JSON_DEPTH) return `the arguments are nested deeper than ${MAX_JSON_DEPTH} levels`;
        open.push({ value, path });
      }
    }
  }
  return null;
}
