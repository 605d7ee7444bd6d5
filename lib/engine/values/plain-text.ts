import type { JsonValue } from '../../contracts/json.js';

/**
 * Shortens text for errors, previews and log lines. Cuts between code points, never inside a surrogate pair, and marks
 * the cut with `…`.
 * @param maxCodePoints the length of the result at most, the mark included; at least 1
 */
export function truncateText(text: string, maxCodePoints: number): string {
  // A text of n UTF-16 units has at most n code points.
  if (text.length <= maxCodePoints) return text;
  let units = 0;
  let cut = 0;
  for (let count = 0; units < text.length; count++) {
    if (count === maxCodePoints) return `${text.slice(0, cut)}…`;
    if (count === maxCodePoints - 1) cut = units;
    units += (text.codePointAt(units) as number) > 0xffff ? 2 : 1;
  }
  return text;
}

/**
 * Well-formed UTF-16 for what leaves the process towards a provider: strict providers refuse a lone surrogate with a
 * 400 for the rest of the session. Stored values are never changed by this; the copy on its way out is.
 *
 * The text with each lone surrogate replaced by U+FFFD; the same text when there is none.
 */
export function wellFormedText(text: string): string {
  return text.isWellFormed() ? text : text.toWellFormed();
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

/** How many problems of one value are told. */
export const MAX_PROBLEMS = 20;
/** Code points of each. */
const MAX_LENGTH = 300;

/**
 * Problems as validators list them, bounded: a value that somebody else chose decides neither how many are told nor how
 * long they are. Never empty: a validator that refuses without a word has refused.
 */
export function firstProblems(problems: readonly unknown[]): string[] {
  const told = problems
    .slice(0, MAX_PROBLEMS)
    .map((problem) => (typeof problem === 'string' ? truncateText(problem, MAX_LENGTH) : ''))
    .filter((problem) => problem.trim() !== '');
  const more = problems.length - MAX_PROBLEMS;
  if (told.length === 0) return ['they do not fit the schema'];
  return more > 0 ? [...told, `and ${more} more`] : told;
}
