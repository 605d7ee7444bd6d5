import { truncateText } from './truncate-text.js';

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
