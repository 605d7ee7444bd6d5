import { isExactNumber, type JsonObject, type JsonValue } from '../../contracts/json.js';
import { truncateText } from './plain-text.js';

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

/** How many objects and arrays may stand inside each other, the outermost included. */
export const MAX_JSON_DEPTH = 128;

export type PathStep = string | number;

/**
 * Places inside a JSON value, as text for people: `$.a[3].b`, `$["any key"]`.
 *
 * Long keys and long paths are shortened: a key may be as large as a payload.
 */
export function pathText(steps: readonly PathStep[]): string {
  return truncateText(`$${steps.map(stepText).join('')}`, 1_000);
}

function stepText(step: PathStep): string {
  if (typeof step === 'number') return `[${step}]`;
  return /^[A-Za-z_][A-Za-z0-9_]{0,99}$/.test(step) ? `.${step}` : `[${JSON.stringify(truncateText(step, 100))}]`;
}

/**
 * Sizes of JSON text without building it: what `JSON.stringify` would write, counted in UTF-8 bytes.
 *
 * Bytes of a string as JSON text, quotes and escapes included. Stops counting beyond `limit`: the result is then
 * merely larger than it.
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

/** Bytes of a value as JSON text. */
export function jsonBytes(value: unknown): number {
  return new TextEncoder().encode(JSON.stringify(value)).length;
}

/**
 * How many of these, in order, one commit or page takes beside what it holds already. Of one that is empty at least
 * one: it was let in by itself, and waiting would not make it smaller.
 */
export function countThatFits(items: readonly unknown[], beside: readonly unknown[], maxBytes = Infinity): number {
  if (maxBytes === Infinity) return items.length;
  let room = maxBytes - (beside.length === 0 ? 0 : jsonBytes(beside));
  for (const [index, item] of items.entries()) {
    room -= jsonBytes(item) + 1;
    if (room < 0 && (index > 0 || beside.length > 0)) return index;
  }
  return items.length;
}

export type ParsedArgumentText = { ok: true; arguments: JsonObject } | { ok: false; problem: string };

/**
 * The argument text of a model's call as a JSON object. Strict JSON (RFC 8259): nothing is repaired, because a
 * repaired call is one the model did not make. What a journal could not give back as it was (numbers beyond a double,
 * deeper than a result may be) is refused here, so that a live run and a recovered one see the same value.
 *
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
