/** Places inside a JSON value, as text for people: `$.a[3].b`, `$["any key"]`. */
import { truncateText } from './truncate-text.js';

/** How many objects and arrays may stand inside each other, the outermost included. */
export const MAX_JSON_DEPTH = 128;

export type PathStep = string | number;

/** Long keys and long paths are shortened: a key may be as large as a payload. */
export function pathText(steps: readonly PathStep[]): string {
  return truncateText(`$${steps.map(stepText).join('')}`, 1_000);
}

function stepText(step: PathStep): string {
  if (typeof step === 'number') return `[${step}]`;
  return /^[A-Za-z_][A-Za-z0-9_]{0,99}$/.test(step) ? `.${step}` : `[${JSON.stringify(truncateText(step, 100))}]`;
}
