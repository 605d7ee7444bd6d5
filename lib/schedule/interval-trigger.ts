import { cronJobOf, intervalOf } from './job-timer.js';
import type { JobTrigger } from './job-trigger.js';
import type { RunJob } from './run-job.js';

/** Own timers, for hosts without `@nestjs/schedule`. */
export class IntervalTrigger implements JobTrigger {
  readonly kind = 'interval';
  private stops: (() => void)[] = [];

  start(jobs: readonly RunJob[]): void {
    for (const job of jobs) {
      if ('cron' in job.schedule) {
        const cronJob = cronJobOf(job, job.schedule.cron);
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
