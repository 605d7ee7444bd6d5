/** Checks of single option values. Each adds its problem and gives back the value, or the default where there is none. */
import { type Duration, parseDuration } from '../contracts/duration.js';
import type { ProblemList } from './problem-list.js';

export function checkKeys(
  options: object,
  allowed: readonly string[],
  what: string,
  problems: ProblemList,
  refused: Readonly<Record<string, string>> = {},
): void {
  const unknown = Object.keys(options).filter((key) => !allowed.includes(key));
  for (const key of unknown.filter((name) => Object.hasOwn(refused, name))) {
    problems.add(`${what}: "${key}" is not supported. ${refused[key]}`);
  }
  const others = unknown.filter((key) => !Object.hasOwn(refused, key));
  if (others.length === 0) return;
  problems.add(
    `${what}: unknown option${others.length > 1 ? 's' : ''} ${others.map((key) => `"${key}"`).join(', ')}. Known are: ${allowed.join(', ')}.`,
  );
}

export function checkCount(value: unknown, fallback: number, what: string, problems: ProblemList, least = 1): number {
  if (value === undefined) return fallback;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least) return value;
  problems.add(`${what} is ${shown(value)}; it must be a whole number of at least ${least}.`);
  return fallback;
}

export function checkDuration<F extends number | null>(
  value: Duration | undefined,
  fallback: F,
  what: string,
  problems: ProblemList,
): number | F {
  if (value === undefined) return fallback;
  return problems.attempt(() => parseDuration(value, what)) ?? fallback;
}

export function checkOneOf<T extends string | boolean>(
  value: unknown,
  allowed: readonly T[],
  fallback: T,
  what: string,
  problems: ProblemList,
): T {
  if (value === undefined) return fallback;
  if (allowed.includes(value as T)) return value as T;
  problems.add(`${what} is ${shown(value)}; it must be one of: ${allowed.join(', ')}.`);
  return fallback;
}

/** A value as a message may show it. */
export function shown(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'bigint' || value === undefined) return String(value);
  if (typeof value === 'function') return `a function`;
  const text = JSON.stringify(value) as string | undefined;
  return text === undefined ? typeof value : text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
