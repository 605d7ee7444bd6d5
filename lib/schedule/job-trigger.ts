import type { Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import type { RunJob } from './run-job.js';
import { InvalidConfigurationError } from '../errors/configuration.errors.js';

/** What turns jobs. Neither keeps the process alive. */
export interface JobTrigger {
  readonly kind: 'schedule' | 'interval';
  start(jobs: readonly RunJob[]): void;
  /** Idempotent; never throws. */
  stop(): void;
}

/** Calls `job.tick()` every so often, from now on. */
export function intervalOf(job: RunJob, everyMs: number): NodeJS.Timeout {
  const timer = setInterval(() => void job.tick(), everyMs);
  timer.unref();
  return timer;
}

/** Own timers, for hosts without `@nestjs/schedule`. */
export class IntervalTrigger implements JobTrigger {
  readonly kind = 'interval';
  private stops: (() => void)[] = [];

  start(jobs: readonly RunJob[]): void {
    for (const job of jobs) {
      if ('cron' in job.schedule) {
        const cronJob = job.schedule.timer(() => void job.tick());
        cronJob.start();
        this.stops.push(() => void cronJob.stop());
      } else {
        const timer = intervalOf(job, job.schedule.everyMs);
        this.stops.push(() => clearInterval(timer));
      }
    }
  }

  stop(): void {
    for (const stop of this.stops.splice(0)) stop();
  }
}

type SchedulerRegistry = import('@nestjs/schedule').SchedulerRegistry;

const FIX =
  "Add ScheduleModule.forRoot() from @nestjs/schedule to the imports of your application's module, or set trigger: 'interval' (own timers) or trigger: false (you call RunRecovery yourself).";

/**
 * @param kind what the host asked for; undefined: its scheduler, or own timers where `@nestjs/schedule` is not installed
 * @param load the import itself, so that bundlers and both module formats see a literal specifier
 * @throws InvalidConfigurationError when the scheduler is to be used and the host has none
 */
export async function findTrigger(
  kind: JobTrigger['kind'] | undefined,
  moduleRef: ModuleRef,
  load: () => Promise<{ SchedulerRegistry: Type<SchedulerRegistry> }> = () => import('@nestjs/schedule'),
): Promise<JobTrigger> {
  if (kind === 'interval') return new IntervalTrigger();
  let token: Type<SchedulerRegistry>;
  try {
    token = (await load()).SchedulerRegistry;
  } catch (cause) {
    const isMissing = isNotInstalled(cause, '@nestjs/schedule');
    if (kind === undefined && isMissing) return new IntervalTrigger();
    const state = isMissing ? 'is not installed' : 'could not be loaded';
    throw new InvalidConfigurationError([`The recovery jobs need @nestjs/schedule, which ${state}. ${FIX}`], cause);
  }
  try {
    return new SchedulerTrigger(moduleRef.get(token, { strict: false }));
  } catch (cause) {
    throw new InvalidConfigurationError(
      [`The recovery jobs need ScheduleModule, which is not imported. ${FIX}`],
      cause,
    );
  }
}

/**
 * The host's own `SchedulerRegistry`: jobs are registered once, under fixed names, where the host can see and stop
 * them. `ScheduleModule` is never imported by this package, because a second import doubles every cron of the host.
 */
export class SchedulerTrigger implements JobTrigger {
  readonly kind = 'schedule';
  private registered: { kind: 'cron' | 'interval'; name: string }[] = [];

  constructor(private readonly registry: SchedulerRegistry) {}

  start(jobs: readonly RunJob[]): void {
    for (const job of jobs) {
      if ('cron' in job.schedule) {
        const cronJob = job.schedule.timer(() => void job.tick());
        // The registry's typing names its own copy of `cron`.
        this.registry.addCronJob(job.name, cronJob);
        this.registered.push({ kind: 'cron', name: job.name });
        cronJob.start();
      } else {
        this.registry.addInterval(job.name, intervalOf(job, job.schedule.everyMs));
        this.registered.push({ kind: 'interval', name: job.name });
      }
    }
  }

  /** The scheduler may have cleared everything already; hooks run in no order that one could rely on. */
  stop(): void {
    for (const { kind, name } of this.registered.splice(0)) {
      if (!this.registry.doesExist(kind, name)) continue;
      if (kind === 'cron') this.registry.deleteCronJob(name);
      else this.registry.deleteInterval(name);
    }
  }
}

/** Whether it is the package itself that is missing, not something that it needs. */
function isNotInstalled(cause: unknown, name: string): boolean {
  const { code, message } = (cause ?? {}) as { code?: unknown; message?: unknown };
  return /MODULE_NOT_FOUND$/.test(String(code)) && String(message).includes(`'${name}'`);
}
