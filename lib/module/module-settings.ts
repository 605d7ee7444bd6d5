/**
 * From the host's options to what the engine and the jobs run on. Pure: whatever is wrong becomes a problem, and `onModuleInit` throws them all together
 * with those of the registrations.
 */
import { hostname } from 'node:os';
import { parseDuration, type Duration } from '../contracts/duration.js';
import type { ModelClient } from '../contracts/ports/model-client.port.js';
import { AGENT_LIMIT_KEYS, checkLimits } from '../discovery/build-agents.js';
import { checkCount, checkDuration, checkKeys, checkOneOf, shown } from '../discovery/option-checks.js';
import { ProblemList } from '../discovery/problem-list.js';
import type { AgentDefaults } from '../discovery/registration-settings.js';
import { DEFAULT_ENGINE_OPTIONS, type EngineOptions } from '../engine/engine-ports.js';
import { type JobSchedule, parseJobSchedule } from '../schedule/job-schedule.js';
import type { RecoverySchedules } from '../schedule/recovery-jobs.js';
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

const OPTION_KEYS: readonly (keyof AgentRunsModuleOptions)[] = [
  'models',
  'defaults',
  'lease',
  'pollInterval',
  'maxConcurrentRuns',
  'shutdownTimeout',
  'maxRecoveries',
  'unknownVersionAfter',
  'workerName',
  'reconcileEvery',
  'backoffEvery',
  'expireEvery',
  'approvalExpires',
  'resumeAfterAnswers',
  'maxPendingRuns',
  'maxOperations',
  'maxPayloadBytes',
  'allowMemoryStore',
  'globalEnhancers',
  'redactKeys',
  'onStoreFailure',
];

const STRUCTURAL = Object.fromEntries(
  STRUCTURE_KEYS.map((key) => [
    key,
    'It is fixed when the module is declared: give it to forRoot or forRootAsync itself, not to the factory.',
  ]),
);
/** How much more rarely a worker with nothing to do asks. */
const IDLE_FACTOR = 5;

export function resolveSettings(given: AgentRunsModuleOptions, structure: AgentRunsModuleStructure): ModuleSettings {
  const problems = new ProblemList();
  const options = objectOf(given, 'AgentRunsModule options', problems) as AgentRunsModuleOptions;
  checkKeys(options, OPTION_KEYS, 'AgentRunsModule options', problems, STRUCTURAL);
  const { worker, jobs, trigger } = checkStructure(structure, problems);
  return {
    problems,
    engine: engineOptions(options, worker, problems),
    models: checkModels(options.models, problems),
    defaults: checkDefaults(options.defaults, problems),
    schedules: {
      reconcile: schedule(options.reconcileEvery, '30s', 'reconcileEvery', problems),
      backoff: schedule(options.backoffEvery, '5s', 'backoffEvery', problems),
      expire: schedule(options.expireEvery, '1m', 'expireEvery', problems),
    },
    jobs,
    trigger,
    allowMemoryStore: checkFlag(options.allowMemoryStore, false, 'allowMemoryStore', problems),
    globalEnhancers: checkFlag(options.globalEnhancers, false, 'globalEnhancers', problems),
    redactKeys: checkNames(options.redactKeys, 'redactKeys', problems),
  };
}

function checkStructure(
  structure: AgentRunsModuleStructure,
  problems: ProblemList,
): { worker: boolean } & Pick<ModuleSettings, 'jobs' | 'trigger'> {
  const { trigger } = structure;
  checkFlag(structure.isGlobal, true, 'isGlobal', problems);
  const worker = checkFlag(structure.worker, true, 'worker', problems);
  const recovery = checkFlag(structure.recovery, worker, 'recovery', problems);
  if (trigger === false) return { worker, jobs: false, trigger: undefined };
  return { worker, jobs: recovery, trigger: checkTrigger(trigger, problems) };
}

function checkTrigger(trigger: AgentRunsModuleStructure['trigger'], problems: ProblemList): ModuleSettings['trigger'] {
  if (trigger === undefined || trigger === 'schedule' || trigger === 'interval') return trigger;
  problems.add(`trigger is ${shown(trigger)}; it must be 'schedule', 'interval' or false.`);
  return undefined;
}

function engineOptions(options: AgentRunsModuleOptions, worker: boolean, problems: ProblemList): EngineOptions {
  const base = DEFAULT_ENGINE_OPTIONS;
  const duration = (value: Duration | undefined, fallback: number, name: string): number =>
    checkDuration(value, fallback, name, problems);
  const pollMs = duration(options.pollInterval, base.pollMs, 'pollInterval');
  return {
    worker,
    workerName: checkWorkerName(options.workerName, problems),
    leaseMs: duration(options.lease, base.leaseMs, 'lease'),
    pollMs,
    pollIdleMs: pollMs * IDLE_FACTOR,
    maxConcurrentRuns: checkCount(options.maxConcurrentRuns, base.maxConcurrentRuns, 'maxConcurrentRuns', problems),
    shutdownTimeoutMs: duration(options.shutdownTimeout, base.shutdownTimeoutMs, 'shutdownTimeout'),
    maxRecoveries: checkCount(options.maxRecoveries, base.maxRecoveries, 'maxRecoveries', problems, 0),
    unknownVersionAfterMs: duration(options.unknownVersionAfter, base.unknownVersionAfterMs, 'unknownVersionAfter'),
    maxPendingRuns: checkCount(options.maxPendingRuns, base.maxPendingRuns, 'maxPendingRuns', problems),
    maxOperations: checkCount(options.maxOperations, base.maxOperations, 'maxOperations', problems),
    maxPayloadBytes: checkCount(options.maxPayloadBytes, base.maxPayloadBytes, 'maxPayloadBytes', problems),
    approvalExpiresMs:
      options.approvalExpires === 'never'
        ? null
        : checkDuration(options.approvalExpires, base.approvalExpiresMs, 'approvalExpires', problems),
    resumeAfterAnswers: checkOneOf(
      options.resumeAfterAnswers,
      ['automatic', 'manual'],
      base.resumeAfterAnswers,
      'resumeAfterAnswers',
      problems,
    ),
    onStoreFailure: checkCallback(options.onStoreFailure, problems),
  };
}

function checkWorkerName(name: string | undefined, problems: ProblemList): string {
  if (name === undefined)
    return (
      hostname()
        .replaceAll(/[^A-Za-z0-9._-]/g, '-')
        .slice(0, 64) || 'worker'
    );
  if (typeof name === 'string' && /^[A-Za-z0-9._-]{1,64}$/.test(name)) return name;
  problems.add(`workerName is ${shown(name)}. Use 1-64 characters of A-Z a-z 0-9 . _ -`);
  return DEFAULT_ENGINE_OPTIONS.workerName;
}

function checkCallback(
  callback: AgentRunsModuleOptions['onStoreFailure'],
  problems: ProblemList,
): EngineOptions['onStoreFailure'] {
  if (callback === undefined || typeof callback === 'function') return callback ?? null;
  problems.add(`onStoreFailure is ${shown(callback)}; it must be a function.`);
  return null;
}

function checkModels(
  models: Record<string, ModelClient> | undefined,
  problems: ProblemList,
): Record<string, ModelClient> {
  const given = objectOf(models, 'models', problems) as Record<string, ModelClient>;
  for (const [name, model] of Object.entries(given)) {
    if (typeof model === 'object' && model !== null && typeof model.generate === 'function') continue;
    const isAiSdk =
      typeof (model as unknown as { specificationVersion?: unknown } | null)?.specificationVersion === 'string';
    problems.add(
      isAiSdk
        ? `models.${name} is a model of the AI SDK. Wrap it with the adapter from nestjs-agent-runs/ai-sdk.`
        : `models.${name} is ${shown(model)}, no model client: it has no generate(request).`,
    );
  }
  return given;
}

function checkDefaults(given: AgentDefaults | undefined, problems: ProblemList): AgentDefaults {
  const defaults = objectOf(given, 'defaults', problems) as AgentDefaults;
  checkKeys(defaults, [...AGENT_LIMIT_KEYS, 'toolTimeout'], 'defaults', problems);
  const before = problems.all.length;
  checkLimits(defaults, 'defaults', problems);
  checkDuration(defaults.toolTimeout, null, 'defaults: toolTimeout', problems);
  // Said once: agents must not repeat what is wrong here.
  return problems.all.length === before ? defaults : {};
}

function schedule(value: JobTime | undefined, fallback: Duration, name: string, problems: ProblemList): JobSchedule {
  const parsed = value === undefined ? undefined : problems.attempt(() => parseJobSchedule(value, name));
  return parsed ?? { everyMs: parseDuration(fallback, name) };
}

function checkFlag(value: unknown, fallback: boolean, name: string, problems: ProblemList): boolean {
  if (value === undefined || typeof value === 'boolean') return value ?? fallback;
  problems.add(`${name} is ${shown(value)}; it must be true or false.`);
  return fallback;
}

function checkNames(value: unknown, name: string, problems: ProblemList): readonly string[] {
  if (value === undefined) return [];
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
  problems.add(`${name} is ${shown(value)}; it must be a list of names.`);
  return [];
}

function objectOf(value: object | undefined, name: string, problems: ProblemList): object {
  if (value === undefined || value === null) return {};
  if (typeof value === 'object' && !Array.isArray(value)) return value;
  problems.add(`${name} is ${shown(value)}; it must be an object.`);
  return {};
}
