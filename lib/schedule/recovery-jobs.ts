/** The jobs of this package and what they call. */
import type { RunRecovery } from '../engine/run-recovery.js';
import type { JobSchedule } from './job-schedule.js';
import { RunJob, type RunJobParts } from './run-job.js';

export interface RecoverySchedules {
  reconcile: JobSchedule;
  backoff: JobSchedule;
  expire: JobSchedule;
}

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
