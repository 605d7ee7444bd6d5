/**
 * The argument text of a model's call as a JSON object. Strict JSON (RFC 8259): nothing is repaired, because a repaired call is one the model
 * did not make. What a journal could not give back as it was (numbers beyond a double, deeper than a result may be) is refused here, so
 * that a live run and a recovered one see the same value.
 */
import type { JsonObject, JsonValue } from '../../contracts/json.js';
import { MAX_JSON_DEPTH, pathText, type PathStep } from './json-path.js';

export type ParsedArgumentText = { ok: true; arguments: JsonObject } | { ok: false; problem: string };

/**
 * Blank text is `{}`: models leave it out for a tool without parameters. Of duplicate keys the last one wins (as in `JSON.parse`); `__proto__`
 * stays an own key and changes no prototype; -0 becomes 0.
 * @returns the object, or a problem in words fit for the model: it names the fault and repeats no argument
 */
export function parseArguments(text: string): ParsedArgumentText {
  if (text.trim() === '') return { ok: true, arguments: {} };
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch (error) {
    const position = /at position (\d+)/.exec((error as Error).message)?.[1];
    const where = position === undefined ? '' : ` (at character ${position})`;
    return { ok: false, problem: `The arguments are not valid JSON${where}. Give exactly one JSON object.` };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return {
      ok: false,
      problem: `The arguments are ${kindOf(value)}, not a JSON object. Give exactly one JSON object.`,
    };
  }
  const problem = domainProblem(value);
  return problem === null ? { ok: true, arguments: value } : { ok: false, problem };
}

function kindOf(value: JsonValue): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`;
}

/** Settles -0 in place and finds what has no lasting form; iterative, because JSON.parse accepts any depth. */
function domainProblem(root: JsonObject): string | null {
  interface Place {
    value: JsonObject | JsonValue[];
    path: readonly PathStep[];
  }
  const open: Place[] = [{ value: root, path: [] }];
  for (let place = open.pop(); place !== undefined; place = open.pop()) {
    const holder = place.value as Record<PathStep, JsonValue>;
    const steps: Iterable<PathStep> = Array.isArray(place.value) ? place.value.keys() : Object.keys(place.value);
    for (const step of steps) {
      const value = holder[step] as JsonValue;
      if (typeof value === 'number') {
        if (!Number.isFinite(value)) return `The number at ${pathText([...place.path, step])} is too large.`;
        if (value === 0) holder[step] = 0;
      } else if (typeof value === 'object' && value !== null) {
        const path = [...place.path, step];
        if (path.length >= MAX_JSON_DEPTH) return `The arguments are nested deeper than ${MAX_JSON_DEPTH} levels.`;
        open.push({ value, path });
      }
    }
  }
  return null;
}
