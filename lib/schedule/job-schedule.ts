/** When a job runs: every so often, or by a cron expression. */
import { validateCronExpression } from 'cron';
import { type Duration, LONGEST_TIMER_MS, parseDuration } from '../contracts/duration.js';
import { InvalidConfigurationError } from '../errors/configuration.errors.js';

export type JobSchedule = { readonly everyMs: number } | { readonly cron: string };

/**
 * @param value a duration (`30s`, 30000) or a cron expression with five or six fields
 * @throws InvalidConfigurationError when it is neither
 */
export function parseJobSchedule(value: Duration | string, option: string): JobSchedule {
  if (typeof value === 'string' && value.trim().includes(' ')) {
    const { valid, error } = validateCronExpression(value);
    if (valid) return { cron: value };
    throw new InvalidConfigurationError([
      `${option} is ${JSON.stringify(value)}, which is no cron expression: ${error?.message ?? 'unreadable'}.`,
    ]);
  }
  const everyMs = durationOf(value, option);
  if (everyMs > LONGEST_TIMER_MS) {
    throw new InvalidConfigurationError([
      `${option} is longer than 24 days. Give a shorter duration or a cron expression.`,
    ]);
  }
  return { everyMs };
}

function durationOf(value: Duration | string, option: string): number {
  try {
    return parseDuration(value, option);
  } catch (cause) {
    throw new InvalidConfigurationError(
      [
        `${option} is ${typeof value === 'number' ? String(value) : JSON.stringify(value)}, which is neither a duration ('30s', 30000) nor a cron expression ('*/30 * * * * *').`,
      ],
      cause,
    );
  }
}

/** For people: `every 30s`. */
export function scheduleText(schedule: JobSchedule): string {
  if ('cron' in schedule) return `at ${schedule.cron}`;
  const { everyMs } = schedule;
  return `every ${everyMs % 1_000 === 0 ? `${everyMs / 1_000}s` : `${everyMs}ms`}`;
}
