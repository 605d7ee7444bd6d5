import type { RunJob } from './run-job.js';

/** What turns jobs. Neither keeps the process alive. */
export interface JobTrigger {
  readonly kind: 'schedule' | 'interval';
  start(jobs: readonly RunJob[]): void;
  /** Idempotent; never throws. */
  stop(): void;
}
