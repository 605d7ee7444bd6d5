/**
 * The host's own `SchedulerRegistry`: jobs are registered once, under fixed names, where the host can see and stop them. `ScheduleModule` is never
 * imported by this package, because a second import doubles every cron of the host.
 */
import type { Type } from '@nestjs/common';
import type { ModuleRef } from '@nestjs/core';
import { InvalidConfigurationError } from '../errors/configuration/invalid-configuration.error.js';
import { cronJobOf, intervalOf } from './job-timer.js';
import type { JobTrigger } from './job-trigger.js';
import type { RunJob } from './run-job.js';

type SchedulerRegistry = import('@nestjs/schedule').SchedulerRegistry;

const FIX =
  "Add ScheduleModule.forRoot() from @nestjs/schedule to the imports of your application's module, or set trigger: 'interval' (own timers) or trigger: false (you call RunRecovery yourself).";

/** @throws InvalidConfigurationError when the host has no ScheduleModule */
export async function findSchedulerRegistry(moduleRef: ModuleRef): Promise<SchedulerRegistry> {
  let token: Type<SchedulerRegistry>;
  try {
    token = (await import('@nestjs/schedule')).SchedulerRegistry;
  } catch (cause) {
    throw new InvalidConfigurationError(
      [`The recovery jobs need @nestjs/schedule, which is not installed. ${FIX}`],
      cause,
    );
  }
  try {
    const registry: SchedulerRegistry = moduleRef.get(token, { strict: false });
    return registry;
  } catch (cause) {
    throw new InvalidConfigurationError(
      [`The recovery jobs need ScheduleModule, which is not imported. ${FIX}`],
      cause,
    );
  }
}

export class SchedulerTrigger implements JobTrigger {
  private registered: { kind: 'cron' | 'interval'; name: string }[] = [];

  constructor(private readonly registry: SchedulerRegistry) {}

  start(jobs: readonly RunJob[]): void {
    for (const job of jobs) {
      if ('cron' in job.schedule) {
        const cronJob = cronJobOf(job, job.schedule.cron);
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
