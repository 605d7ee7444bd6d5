/**
 * The argument text of a model's call as a JSON object. Strict JSON (RFC 8259): nothing is repaired, because a repaired
 * call is one the model did not make. What a journal could not give back as it was (numbers beyond a double, deeper
 * than a result may be) is refused here, so that a live run and a recovered one see the same value.
 */
import type { JsonObject, JsonValue } from '../../contracts/json.js';
import { argumentsProblem } from './json-domain.js';

export type ParsedArgumentText = { ok: true; arguments: JsonObject } | { ok: false; problem: string };

/**
 * Blank text is `{}`: models leave it out for a tool without parameters. Of duplicate keys the last one wins (as in
 * `JSON.parse`); `__proto__` stays an own key and changes no prototype; -0 becomes 0.
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
  const problem = argumentsProblem(value);
  return problem === null ? { ok: true, arguments: value } : { ok: false, problem: sentence(problem) };
}

function kindOf(value: JsonValue): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`;
}

function sentence(problem: string): string {
  return `${problem.charAt(0).toUpperCase()}${problem.slice(1)}.`;
}
