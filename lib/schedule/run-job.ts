/**
 * One recurring piece of work. Ticks never overlap within this process, are jittered so that processes started together do not ask the database together,
 * log their failures and never throw. Correctness does not depend on any of this: leases decide.
 */
import type { Clock, EngineLog, IdSource } from '../contracts/ports/system.port.js';
import type { JobSchedule } from './job-schedule.js';

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
