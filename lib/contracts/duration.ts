import { InvalidConfigurationError } from '../errors/configuration.errors.js';

/**
 * A length of time in an option: milliseconds as a number, or text such as `250ms`, `1.5s`, `10m`, `2h`, `30d`. At
 * least 1 ms.
 */
export type Duration = number | `${number}${DurationUnit}`;
/** The units of a {@link Duration}: milliseconds, seconds, minutes, hours, days of 24 hours. */
export type DurationUnit = 'ms' | 's' | 'm' | 'h' | 'd';

const UNIT_MS: Readonly<Record<DurationUnit, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** What one timer of Node waits at most; beyond it, it fires at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** So that now and any duration make a date: the last one there is comes after 8.64e15 ms. */
const LONGEST_MS = 8e15;

export const DURATION_RULE =
  "is no duration. Give milliseconds as a number, or text like '250ms', '30s', '10m', '24h', '30d'";

/**
 * Whole milliseconds, at least 1; undefined for whatever is no positive, finite duration up to 8e15 ms (some 250 000
 * years).
 */
export function durationMs(value: unknown): number | undefined {
  const match = typeof value === 'string' ? /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(value.trim()) : null;
  const ms =
    typeof value === 'number' ? value : match ? Number(match[1]) * UNIT_MS[match[2] as DurationUnit] : Number.NaN;
  const rounded = Math.round(ms);
  return rounded >= 1 && rounded <= LONGEST_MS ? rounded : undefined;
}

/**
 * As {@link durationMs}.
 * @param option the option's name, for the error
 * @throws InvalidConfigurationError for whatever is no duration
 */
export function parseDuration(value: Duration | string, option: string): number {
  const ms = durationMs(value);
  if (ms !== undefined) return ms;
  throw new InvalidConfigurationError([
    `${option} is ${JSON.stringify(value) ?? String(value)}, which ${DURATION_RULE}.`,
  ]);
}

/**
 * As {@link parseDuration}, for what a single timer has to wait.
 * @throws InvalidConfigurationError also for more than 2^31 - 1 ms, some 24 days
 */
export function parseTimerDuration(value: Duration | string, option: string): number {
  const ms = parseDuration(value, option);
  if (ms > LONGEST_TIMER_MS) {
    throw new InvalidConfigurationError([`${option} is longer than 24 days. Give a shorter duration.`]);
  }
  return ms;
}
