import { hostname } from 'node:os';
import { type Duration, parseDuration } from '../contracts/duration.js';
import type { ModelClient } from '../contracts/ports/model-client.port.js';
import { formatValue, readOptions } from '../contracts/read-options.js';
import {
  anything,
  callback,
  duration,
  type Field,
  field,
  flag,
  type Given,
  object,
  oneOf,
  openObject,
  texts,
  wholeNumber,
} from '../contracts/schema.js';
import { ProblemList } from '../discovery/problem-list.js';
import type { AgentDefaults } from '../discovery/registration-settings.js';
import { DEFAULT_ENGINE_OPTIONS, type EngineOptions } from '../engine/engine-ports.js';
import { type JobSchedule, parseJobSchedule, type RecoverySchedules } from '../schedule/run-job.js';
import {
  type AgentRunsModuleOptions,
  type AgentRunsModuleStructure,
  type JobTime,
  STRUCTURE_KEYS,
} from './agent-runs-module.options.js';

export interface ModuleSettings {
  problems: ProblemList;
  engine: EngineOptions;
  models: Record<string, ModelClient>;
  defaults: AgentDefaults;
  schedules: RecoverySchedules;
  /** Whether this process runs the recovery jobs. */
  jobs: boolean;
  /** Undefined: whichever is there. */
  trigger: 'schedule' | 'interval' | undefined;
  allowMemoryStore: boolean;
  globalEnhancers: boolean;
  redactKeys: readonly string[];
}

const WORKER_NAME = /^[A-Za-z0-9._-]{1,64}$/;

const OPTIONS = object({
  models: anything(),
  defaults: anything(),
  lease: duration,
  pollInterval: duration,
  streamPoll: duration,
  maxConcurrentRuns: wholeNumber(),
  shutdownTimeout: duration,
  maxRecoveries: wholeNumber({ minimum: 0 }),
  unknownVersionAfter: duration,
  workerName: field<string>(
    'text of 1-64 characters of A-Z a-z 0-9 . _ -',
    (value) => typeof value === 'string' && WORKER_NAME.test(value),
  ),
  reconcileEvery: anything(),
  backoffEvery: anything(),
  expireEvery: anything(),
  approvalExpires: orNever(duration),
  resumeAfterAnswers: oneOf(['automatic', 'manual']),
  maxPendingRuns: wholeNumber(),
  maxOperations: wholeNumber(),
  maxPayloadBytes: wholeNumber(),
  allowMemoryStore: flag(),
  globalEnhancers: flag(),
  redactKeys: texts('a list of names'),
  onStoreFailure: callback<NonNullable<AgentRunsModuleOptions['onStoreFailure']>>(),
} satisfies Record<keyof AgentRunsModuleOptions, Field<unknown>>);

const STRUCTURE = openObject({
  isGlobal: flag(),
  worker: flag(),
  recovery: flag(),
  trigger: field<AgentRunsModuleStructure['trigger']>("'schedule', 'interval' or false", (value) =>
    ['schedule', 'interval', false].includes(value as string),
  ),
  imports: anything(),
} satisfies Record<keyof AgentRunsModuleStructure, Field<unknown>>);

const STRUCTURAL = Object.fromEntries(
  STRUCTURE_KEYS.map((key) => [
    key,
    'It is fixed when the module is declared: give it to forRoot or forRootAsync itself, not to the factory.',
  ]),
);
/** How much more rarely a worker with nothing to do asks. */
const IDLE_FACTOR = 5;

/** Null: never. */
function orNever(time: Field<number>): Field<number | null> {
  return { ...time, read: (value, report) => (value === 'never' ? null : time.read(value, report)) };
}

/**
 * From the host's options to what the engine and the jobs run on. Pure: whatever is wrong becomes a problem, and
 * `onModuleInit` throws them all together with those of the registrations.
 */
export async function resolveSettings(
  given: AgentRunsModuleOptions,
  structure: AgentRunsModuleStructure,
): Promise<ModuleSettings> {
  const problems = new ProblemList();
  const subject = 'AgentRunsModule options';
  const options = readOptions(OPTIONS, given, { subject, prefix: '', refused: STRUCTURAL }, problems);
  const {
    worker = true,
    recovery = worker,
    trigger,
  } = readOptions(STRUCTURE, structure, { subject, prefix: '' }, problems);
  const schedule = async (
    name: 'reconcileEvery' | 'backoffEvery' | 'expireEvery',
    fallback: Duration,
  ): Promise<JobSchedule> => {
    const time: JobTime = options[name] ?? fallback;
    const parsed = await problems.attemptAsync(() => parseJobSchedule(time, name));
    return parsed ?? { everyMs: parseDuration(fallback, name) };
  };
  return {
    problems,
    engine: engineOptions(options, worker),
    models: checkModels(options.models, problems),
    defaults: options.defaults ?? {},
    schedules: {
      reconcile: await schedule('reconcileEvery', '30s'),
      backoff: await schedule('backoffEvery', '5s'),
      expire: await schedule('expireEvery', '1m'),
    },
    jobs: trigger !== false && recovery,
    trigger: trigger === false ? undefined : trigger,
    allowMemoryStore: options.allowMemoryStore ?? false,
    globalEnhancers: options.globalEnhancers ?? false,
    redactKeys: options.redactKeys ?? [],
  };
}

function engineOptions(options: Given<typeof OPTIONS.fields>, worker: boolean): EngineOptions {
  const base = DEFAULT_ENGINE_OPTIONS;
  const pollMs = options.pollInterval ?? base.pollMs;
  return {
    worker,
    workerName: options.workerName ?? hostName(),
    leaseMs: options.lease ?? base.leaseMs,
    pollMs,
    pollIdleMs: pollMs * IDLE_FACTOR,
    streamPollMs: options.streamPoll ?? base.streamPollMs,
    maxConcurrentRuns: options.maxConcurrentRuns ?? base.maxConcurrentRuns,
    shutdownTimeoutMs: options.shutdownTimeout ?? base.shutdownTimeoutMs,
    maxRecoveries: options.maxRecoveries ?? base.maxRecoveries,
    unknownVersionAfterMs: options.unknownVersionAfter ?? base.unknownVersionAfterMs,
    maxPendingRuns: options.maxPendingRuns ?? base.maxPendingRuns,
    maxOperations: options.maxOperations ?? base.maxOperations,
    maxPayloadBytes: options.maxPayloadBytes ?? base.maxPayloadBytes,
    approvalExpiresMs: options.approvalExpires === undefined ? base.approvalExpiresMs : options.approvalExpires,
    resumeAfterAnswers: options.resumeAfterAnswers ?? base.resumeAfterAnswers,
    onStoreFailure: options.onStoreFailure ?? base.onStoreFailure,
  };
}

function hostName(): string {
  const name = hostname().replaceAll(/[^A-Za-z0-9._-]/g, '-');
  return name.slice(0, 64) || DEFAULT_ENGINE_OPTIONS.workerName;
}

function checkModels(models: unknown, problems: ProblemList): Record<string, ModelClient> {
  if (models === undefined || models === null) return {};
  if (typeof models !== 'object' || Array.isArray(models)) {
    problems.add(`models is ${formatValue(models)}; it must be an object.`);
    return {};
  }
  for (const [name, model] of Object.entries(models as Record<string, unknown>)) {
    const { generate, specificationVersion } = (model ?? {}) as { generate?: unknown; specificationVersion?: unknown };
    if (typeof generate === 'function') continue;
    problems.add(
      typeof specificationVersion === 'string'
        ? `models.${name} is a model of the AI SDK. Wrap it with the adapter from nestjs-agent-runs/ai-sdk.`
        : `models.${name} is ${formatValue(model)}, no model client: it has no generate(request).`,
    );
  }
  return models as Record<string, ModelClient>;
}
