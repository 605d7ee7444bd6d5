/**
 * The order of things: discovery and checks in `onModuleInit`; the store, claiming and jobs in `onApplicationBootstrap`; on shutdown jobs stop, the
 * worker drains while its heartbeats go on, and the store closes, all in `beforeApplicationShutdown`, where the host's database is still open.
 * Hooks are idempotent, and those of the shutdown never reject: on Nest 11 that would leave the database open.
 */
import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnModuleInit,
  Optional,
} from '@nestjs/common';
import { ModuleRef, ModulesContainer } from '@nestjs/core';
import type { RunObserver } from '../contracts/ports/run-observer.port.js';
import { RunStore } from '../contracts/ports/run-store.port.js';
import { AGENT_RUNS_STORE } from '../decorators/agent-runs-store.tokens.js';
import { AgentRegistry } from '../discovery/agent.registry.js';
import type { RegisteredTool } from '../discovery/registered-tool.js';
import { RegistrationService } from '../discovery/registration.service.js';
import { askUserTool } from '../engine/ask-user-tool.js';
import { endedWithin } from '../engine/ended-within.js';
import type { Engine } from '../engine/engine.js';
import { InvalidConfigurationError } from '../errors/configuration/invalid-configuration.error.js';
import { IntervalTrigger } from '../schedule/interval-trigger.js';
import type { JobTrigger } from '../schedule/job-trigger.js';
import { recoveryJobs } from '../schedule/recovery-jobs.js';
import type { RunJob } from '../schedule/run-job.js';
import { findSchedulerRegistry, SchedulerTrigger } from '../schedule/scheduler-trigger.js';
import {
  AGENT_RUNS_ENGINE,
  AGENT_RUNS_OBSERVERS,
  AGENT_RUNS_SETTINGS,
  AGENT_RUNS_STORE_CHECK,
  type StoreCheck,
} from './agent-runs-module.tokens.js';
import { checkStore, refuseForgetfulStore, refuseSecondModule } from './boot-checks.js';
import { DiagnosticsChannelObserver } from './diagnostics-channel-observer.js';
import type { ModuleSettings } from './module-settings.js';
import { RedactingObserver } from './redacting-observer.js';
import { watchShutdownHooks } from './shutdown-hooks-watch.js';
import { startUpLine } from './start-up-line.js';

@Injectable()
export class AgentRunsLifecycle implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger('AgentRunsModule');
  private initialised: Promise<void> | null = null;
  private started: Promise<void> | null = null;
  private stopped: Promise<void> | null = null;
  private trigger: JobTrigger | null = null;
  private jobs: RunJob[] = [];
  private unwatch: (() => void) | null = null;

  constructor(
    @Inject(AGENT_RUNS_SETTINGS) private readonly settings: ModuleSettings,
    @Inject(AGENT_RUNS_ENGINE) private readonly engine: Engine,
    @Inject(AGENT_RUNS_STORE) private readonly store: RunStore,
    @Inject(AGENT_RUNS_OBSERVERS) private readonly observers: RunObserver[],
    @Inject(AgentRegistry) private readonly registry: AgentRegistry,
    @Inject(RegistrationService) private readonly registration: RegistrationService,
    @Inject(ModulesContainer) private readonly modules: ModulesContainer,
    @Inject(ModuleRef) private readonly moduleRef: ModuleRef,
    @Optional() @Inject(RunStore) private readonly hostStore?: RunStore,
    @Optional() @Inject(AGENT_RUNS_STORE_CHECK) private readonly storeCheck?: StoreCheck,
  ) {}

  onModuleInit(): Promise<void> {
    return (this.initialised ??= this.initialise());
  }

  onApplicationBootstrap(): Promise<void> {
    return (this.started ??= this.start());
  }

  beforeApplicationShutdown(): Promise<void> {
    return (this.stopped ??= this.stop());
  }

  /** @throws InvalidConfigurationError with everything that is wrong */
  private async initialise(): Promise<void> {
    const { settings, store, engine } = this;
    const { problems } = settings;
    refuseSecondModule(this.modules, problems);
    checkStore(store, this.hostStore === undefined, this.modules, problems);
    refuseForgetfulStore(store, settings.allowMemoryStore, problems);
    const { agents, tools, observers, guardrail, approvalResolver } = await this.registration.register(
      {
        ...settings,
        builtInTools: [askUserTool()],
        store: store.traits,
        leaseMs: settings.engine.leaseMs,
        clock: engine.ports.clock,
        digester: engine.ports.digester,
      },
      problems,
    );
    for (const problem of this.storeCheck?.({ transactionalTools: transactionalAmong(tools) }) ?? [])
      problems.add(problem);
    this.trigger = (await problems.attemptAsync(() => this.findTrigger())) ?? null;
    if (problems.all.length > 0) throw new InvalidConfigurationError(problems.all);
    this.registry.keep(agents);
    engine.ports.guardrail = guardrail;
    engine.ports.approvalResolver = approvalResolver;
    this.observe([new DiagnosticsChannelObserver(), ...observers]);
  }

  private async start(): Promise<void> {
    const { store, engine, settings } = this;
    await store.open();
    this.respectStore();
    // A signal may have come while the store opened.
    if (this.stopped) return;
    await engine.worker.start();
    if (this.stopped) return;
    if (this.trigger) {
      this.jobs = recoveryJobs(engine.recovery, settings.schedules, engine.ports);
      this.trigger.start(this.jobs);
    }
    this.logger.log(startUpLine(store.traits.name, this.registry, settings));
    if (settings.engine.worker) {
      this.unwatch = watchShutdownHooks(engine.ports.clock, (message) => this.logger.warn(message));
    }
  }

  /** What the store could not keep is refused, or becomes an error, where it comes in. */
  private respectStore(): void {
    const { maxPayloadBytes, name } = this.store.traits;
    const options = this.settings.engine;
    if (maxPayloadBytes === undefined || maxPayloadBytes >= options.maxPayloadBytes) return;
    this.logger.log(
      `${name} takes payloads of at most ${maxPayloadBytes} bytes, as its server is set up: maxPayloadBytes is that, not ${options.maxPayloadBytes}`,
    );
    options.maxPayloadBytes = maxPayloadBytes;
  }

  private async stop(): Promise<void> {
    await this.quietly('stopping the recovery jobs', () => {
      this.unwatch?.();
      for (const job of this.jobs) job.stop();
      this.trigger?.stop();
    });
    await this.startSettled();
    await this.quietly('draining the worker', () => this.engine.worker.drain());
    await this.quietly('closing the store', () => this.store.close());
  }

  /** Claims must not begin after the drain has looked; but a database that never answers must not hold the shutdown. */
  private async startSettled(): Promise<void> {
    const { clock, options } = this.engine.ports;
    if (this.started) await endedWithin(clock, options.shutdownTimeoutMs, this.started);
  }

  private async quietly(what: string, work: () => void | Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.logger.error(`Shutdown: ${what} failed (${error instanceof Error ? error.name : typeof error})`);
    }
  }

  private async findTrigger(): Promise<JobTrigger | null> {
    switch (this.settings.trigger) {
      case 'schedule':
        return new SchedulerTrigger(await findSchedulerRegistry(this.moduleRef));
      case 'interval':
        return new IntervalTrigger();
      case null:
        return null;
    }
  }

  private observe(found: readonly RunObserver[]): void {
    const { redactKeys } = this.settings;
    this.observers.push(
      ...found.map((observer) => (redactKeys.length === 0 ? observer : new RedactingObserver(observer, redactKeys))),
    );
  }
}

function transactionalAmong(tools: readonly RegisteredTool[]): string[] {
  return tools
    .map(({ definition }) => definition)
    .filter(({ recovery }) => recovery === 'transactional')
    .map(({ name }) => name);
}
