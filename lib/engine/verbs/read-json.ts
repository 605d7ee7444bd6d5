import type { JsonValue } from '../../contracts/json.js';
import { normaliseResult } from '../values/normalise-result.js';
import type { FieldProblem } from './read-start-options.js';

/**
 * JSON that a caller gave, as a copy. A number that a parser on the way may have rounded is refused: over HTTP the host's parser has read the body, and what
 * its text said cannot be known any more.
 * @returns undefined after adding to the problems
 */
export function readJson(
  field: string,
  value: unknown,
  problems: FieldProblem[],
  maxBytes = Infinity,
): JsonValue | undefined {
  const read = normaliseResult(value, { maxBytes, exactNumbers: true });
  if (read.ok) return read.value;
  problems.push({ field, problem: `cannot be stored: ${read.path} ${read.problem}` });
  return undefined;
}
