/** The timer behind a job; unref'ed, so that it never keeps the process alive. */
import { CronJob } from 'cron';
import type { RunJob } from './run-job.js';

/** Calls `job.tick()` by its cron expression, once started. */
export function cronJobOf(job: RunJob, expression: string): CronJob {
  return CronJob.from({ cronTime: expression, onTick: () => job.tick(), start: false, unrefTimeout: true });
}

/** Calls `job.tick()` every so often, from now on. */
export function intervalOf(job: RunJob, everyMs: number): NodeJS.Timeout {
  const timer = setInterval(() => void job.tick(), everyMs);
  timer.unref();
  return timer;
}
