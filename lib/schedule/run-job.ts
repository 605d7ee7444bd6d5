import type { CronJob } from 'cron';
import type { Clock, EngineLog, IdSource } from '../contracts/ports/system.port.js';
import { type Duration, LONGEST_TIMER_MS, parseDuration } from '../contracts/duration.js';
import { InvalidConfigurationError } from '../errors/configuration.errors.js';
import type { RunRecovery } from '../engine/run-recovery.js';

export interface RunJobParts {
  /** As in the scheduler's registry, e.g. `agent-runs:reconcile`. */
  name: string;
  schedule: JobSchedule;
  run: () => Promise<void>;
  clock: Clock;
  ids: Pick<IdSource, 'random'>;
  log: EngineLog;
}

const MOST_JITTER_MS = 1_000;
const CRON_JITTER_MS = 250;

/**
 * One recurring piece of work. Ticks never overlap within this process, are jittered so that processes started
 * together do not ask the database together, log their failures and never throw. Correctness does not depend on any of
 * this: leases decide.
 */
export class RunJob {
  readonly name: string;
  readonly schedule: JobSchedule;
  private isRunning = false;
  private isStopped = false;
  private wake: (() => void) | null = null;

  constructor(private readonly parts: RunJobParts) {
    this.name = parts.name;
    this.schedule = parts.schedule;
  }

  /** One turn; resolves when it is over. Does nothing while the previous one still works, or after {@link stop}. */
  async tick(): Promise<void> {
    if (this.isRunning || this.isStopped) return;
    this.isRunning = true;
    try {
      await this.jitter();
      if (!this.isStopped) await this.parts.run();
    } catch (error) {
      this.parts.log.error(`${this.name} failed; the next tick tries again`, {
        error: error instanceof Error ? error.name : typeof error,
        code: (error as { code?: unknown } | null)?.code,
      });
    } finally {
      this.isRunning = false;
    }
  }

  /** No tick begins from now on; one that waits for its jitter ends. Idempotent. */
  stop(): void {
    this.isStopped = true;
    this.wake?.();
  }

  private jitter(): Promise<void> {
    const { schedule, clock, ids } = this.parts;
    const most = 'cron' in schedule ? CRON_JITTER_MS : Math.min(schedule.everyMs / 10, MOST_JITTER_MS);
    return new Promise((resolve) => {
      const cancel = clock.after(Math.floor(ids.random() * most), resolve);
      this.wake = () => {
        cancel();
        resolve();
      };
    });
  }
}

/** When a job runs: every so often, or by a cron expression. */
export type JobSchedule = { readonly everyMs: number } | CronSchedule;

export interface CronSchedule {
  readonly cron: string;
  /** A timer that is not started yet and never keeps the process alive. */
  timer(onTick: () => void): CronJob;
}

/**
 * `cron` is loaded when the first expression is read.
 * @param value a duration (`30s`, 30000) or a cron expression with five or six fields
 * @throws InvalidConfigurationError when it is neither
 */
export async function parseJobSchedule(value: Duration | string, option: string): Promise<JobSchedule> {
  if (typeof value === 'string' && value.trim().includes(' ')) {
    const { CronJob, validateCronExpression } = await import('cron');
    const { valid, error } = validateCronExpression(value);
    if (valid) {
      const timer = (onTick: () => void) => CronJob.from({ cronTime: value, onTick, start: false, unrefTimeout: true });
      return { cron: value, timer };
    }
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

export interface RecoverySchedules {
  reconcile: JobSchedule;
  backoff: JobSchedule;
  expire: JobSchedule;
}

/** The jobs of this package and what they call. */
export function recoveryJobs(
  recovery: RunRecovery,
  schedules: RecoverySchedules,
  ports: Pick<RunJobParts, 'clock' | 'ids' | 'log'>,
): RunJob[] {
  const job = (name: string, schedule: JobSchedule, run: () => Promise<void>): RunJob =>
    new RunJob({ name: `agent-runs:${name}`, schedule, run, ...ports });
  return [
    job('reconcile', schedules.reconcile, () => recovery.reconcile()),
    job('backoff', schedules.backoff, () => recovery.runDueBackoffs()),
    job('expire', schedules.expire, () => recovery.expireInteractions()),
  ];
}
