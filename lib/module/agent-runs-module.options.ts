import type { ModuleMetadata } from '@nestjs/common';
import type { Duration } from '../contracts/duration.js';
import type { ModelClient } from '../contracts/ports/model-client.port.js';
import type { AgentDefaults } from '../discovery/registration-settings.js';

/** A duration (`30s`, 30000) or a cron expression with five or six fields. */
export type JobTime = Duration | (string & {});

/** What may come from an asynchronous factory: values only. Unknown keys are a boot error. */
export interface AgentRunsModuleOptions {
  /** Model clients by the name that agents use; `default` is the one of agents that name none. */
  models?: Record<string, ModelClient>;
  /** What agents and tools have unless they say otherwise. */
  defaults?: AgentDefaults;

  /**
   * How long a worker owns its runs without a sign of life; renewed every third of it. Time to takeover is at most this
   * plus one `reconcileEvery`. Default `60s`.
   */
  lease?: Duration;
  /**
   * How often a worker looks for runs that other processes made claimable; five times as rarely while there are none.
   * Default `1s`.
   */
  pollInterval?: Duration;
  /**
   * How often the store is read for the streams that this process serves, in one statement for all of them; not at all
   * while there are none. Commits of this process are streamed at once. Default `150ms`.
   */
  streamPoll?: Duration;
  /** Runs executed at a time in this process. Default 10. */
  maxConcurrentRuns?: number;
  /**
   * How long a shutdown waits for calls in flight before it aborts them. With the graces after it that stays within the
   * 10 s after which Docker kills. Default `7s`.
   */
  shutdownTimeout?: Duration;
  /** Lost leases in a row without a committed result in between, before a person is asked. Default 5. */
  maxRecoveries?: number;
  /**
   * How long a run may be claimable while no live worker has its agent's version; one of them must have been live for
   * as long. Default `60s`.
   */
  unknownVersionAfter?: Duration;
  /** Part of the worker's id in journals and logs. Default: the host's name. */
  workerName?: string;

  /** Expired leases, exhausted and unoffered runs, passed deadlines. Default `30s`. */
  reconcileEvery?: JobTime;
  /** Due backoffs of processes that died. Default `5s`. */
  backoffEvery?: JobTime;
  /** Expired approvals and questions. Default `1m`. */
  expireEvery?: JobTime;
  /** After which an undecided approval counts as refused. Default `24h`. */
  approvalExpires?: Duration | 'never';
  /**
   * Whether a run goes on by itself when its last ask is decided; `manual`: it waits for `resume`. Default `automatic`.
   */
  resumeAfterAnswers?: 'automatic' | 'manual';

  /** Pending and queued runs accepted, over all processes. Default 10,000. */
  maxPendingRuns?: number;
  /** Model and tool calls of one run. Default 10,000. */
  maxOperations?: number;
  /** Bytes of JSON text of one prompt, result or reply. Default 16 MiB. */
  maxPayloadBytes?: number;

  /**
   * Let the application boot with `NODE_ENV=production` though its store does not outlive the process. Default false.
   */
  allowMemoryStore?: boolean;
  /**
   * Run tool calls through the host's global guards, interceptors and filters too. They see an execution context of
   * type `agent` with the arguments `[input, context]`, and the model chooses the input: a guard that takes it for a
   * request must not be among them. Global pipes never run. Default false.
   */
  globalEnhancers?: boolean;
  /**
   * Keys whose values are replaced by `[redacted]` in log lines and in what observers are told. Neither carries
   * prompts, arguments or results anyway.
   */
  redactKeys?: readonly string[];
  /** Told once when the store broke a promise and this process's worker stopped for good. */
  onStoreFailure?: (error: Error) => void;
}

/** What is fixed when the module is declared. */
export interface AgentRunsModuleStructure {
  /** Default true. */
  isGlobal?: boolean;
  /** False: this process starts, reads and answers, and never claims. Default true. */
  worker?: boolean;
  /**
   * Whether the recovery jobs are registered. Default: like `worker`. With `worker: false` and `recovery: true` they
   * free runs and never claim.
   */
  recovery?: boolean;
  /**
   * What runs the recovery jobs: the host's `ScheduleModule` (`schedule`), own timers (`interval`), or nothing (false;
   * the host calls `RunRecovery` itself). Default: `schedule`, and `interval` where `@nestjs/schedule` is not
   * installed.
   */
  trigger?: 'schedule' | 'interval' | false;
  /** Modules whose exports this one needs, such as one that provides `RunStore` without being global. */
  imports?: ModuleMetadata['imports'];
}

/** For `forRootAsync({ useClass })` and `useExisting`. */
export interface AgentRunsOptionsFactory {
  /** Called once, while the application boots. */
  createAgentRunsOptions(): AgentRunsModuleOptions | Promise<AgentRunsModuleOptions>;
}

export const STRUCTURE_KEYS: readonly (keyof AgentRunsModuleStructure)[] = [
  'isGlobal',
  'worker',
  'recovery',
  'trigger',
  'imports',
];
