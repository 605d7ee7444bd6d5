import { isIdentifier } from './text.js';
import { isExactNumber } from './json.js';

export const MAX_METADATA_KEYS = 64;

/** Of a list. Each is one more table to join; databases end at 61. */
export const MAX_METADATA_FILTERS = 16;

/** Of a text value, in characters as people and databases count them: an emoji is one. */
export const MAX_METADATA_TEXT = 191;

/** `__proto__` fits the pattern, and would be lost in a plain object on the way. */
export function isMetadataKey(key: string): boolean {
  return isIdentifier(key) && key !== '__proto__';
}

export function isMetadataText(value: string): boolean {
  return value.length <= MAX_METADATA_TEXT || [...value].length <= MAX_METADATA_TEXT;
}

/** What is wrong with metadata, by key; an empty key stands for all of it. */
export function metadataProblems(metadata: object, maxKeys: number): { key: string; problem: string }[] {
  const entries = Object.entries(metadata) as [string, unknown][];
  if (entries.length > maxKeys) return [{ key: '', problem: `must have at most ${maxKeys} keys` }];
  return entries.flatMap(([key, value]) => {
    if (!isMetadataKey(key)) return [{ key, problem: 'as a key must be 1-128 characters of A-Z a-z 0-9 . _ : -' }];
    const fits =
      typeof value === 'string'
        ? isMetadataText(value)
        : typeof value === 'boolean' || (typeof value === 'number' && isExactNumber(value));
    const problem = `must be text of at most ${MAX_METADATA_TEXT} characters, a number (integers within ±(2^53 − 1)), true or false`;
    return fits ? [] : [{ key, problem }];
  });
}
