import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
  Optional,
} from '@nestjs/common';
import { HttpAdapterHost, LazyModuleLoader, ModuleRef, ModulesContainer } from '@nestjs/core';
import type { RunObserver } from '../contracts/ports/host.port.js';
import { RunStore } from '../contracts/ports/run-store.port.js';
import { AGENT_RUNS_STORE } from '../decorators/inject-run-store.decorator.js';
import { AgentRegistry } from '../discovery/agent.registry.js';
import type { RegisteredTool } from '../discovery/tool-catalog.js';
import { RegistrationService } from '../discovery/registration.service.js';
import { askUserTool } from '../engine/ask-user-tool.js';
import { endedWithin } from '../engine/timed-call.js';
import type { Engine } from '../engine/engine.js';
import { ProblemList } from '../discovery/problem-list.js';
import { InvalidConfigurationError } from '../errors/configuration.errors.js';
import { maxPayloadIn } from '../engine/engine-ports.js';
import { findTrigger, type JobTrigger } from '../schedule/job-trigger.js';
import { recoveryJobs, type RunJob } from '../schedule/run-job.js';
import {
  AGENT_RUNS_ENGINE,
  AGENT_RUNS_OBSERVERS,
  AGENT_RUNS_SETTINGS,
  AGENT_RUNS_STORE_CHECK,
  type StoreCheck,
} from './agent-runs-module.tokens.js';
import {
  afterBootstrapHooks,
  afterLazyLoads,
  endByRepeatedSignal,
  keepProcessAlive,
  stopListening,
  watchShutdownHooks,
} from './process-life.js';
import { requireOneStore, requireDurableStore, refuseSecondModule } from './boot-checks.js';
import { DiagnosticsChannelObserver, RedactingObserver } from './redacting-observer.js';
import type { ModuleSettings } from './module-settings.js';
import { startUpLine } from './nest-engine-log.js';

/** How long callers whose request has been committed may take to be answered, before the store closes. */
const LAST_ANSWERS_MS = 1_000;

/**
 * The order of things. Discovery and checks in `onModuleInit`; the store opens in `onApplicationBootstrap`, or when a run is started before; claiming and
 * jobs begin when the bootstrap hooks of the whole application have ended. On shutdown the port closes, waiting callers are answered, jobs stop, the worker
 * drains while its heartbeats go on, and the store closes, all in `beforeApplicationShutdown`, where the host's database is still open.
 * Hooks are idempotent, and those of the shutdown never reject: on Nest 11 that would leave the database open.
 */
@Injectable()
export class AgentRunsLifecycle
  implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown
{
  private readonly logger = new Logger('AgentRunsModule');
  private readonly diagnostics = new DiagnosticsChannelObserver();
  private readonly observed = new Set<RunObserver>();
  private initialised: Promise<void> | null = null;
  private opened: Promise<void> | null = null;
  private started: Promise<void> | null = null;
  private stopped: Promise<void> | null = null;
  private trigger: JobTrigger | null = null;
  private jobs: RunJob[] = [];
  private letGo: (() => void)[] = [];

  constructor(
    @Inject(AGENT_RUNS_SETTINGS) private readonly settings: ModuleSettings,
    @Inject(AGENT_RUNS_ENGINE) private readonly engine: Engine,
    @Inject(AGENT_RUNS_STORE) private readonly store: RunStore,
    @Inject(AGENT_RUNS_OBSERVERS) private readonly observers: RunObserver[],
    @Inject(AgentRegistry) private readonly registry: AgentRegistry,
    @Inject(RegistrationService) private readonly registration: RegistrationService,
    @Inject(ModulesContainer) private readonly modules: ModulesContainer,
    @Inject(ModuleRef) private readonly moduleRef: ModuleRef,
    @Inject(HttpAdapterHost) private readonly adapterHost: HttpAdapterHost,
    @Inject(LazyModuleLoader) private readonly lazyModules: LazyModuleLoader,
    @Optional() @Inject(RunStore) private readonly hostStore?: RunStore,
    @Optional() @Inject(AGENT_RUNS_STORE_CHECK) private readonly storeCheck?: StoreCheck,
  ) {}

  onModuleInit(): Promise<void> {
    return (this.initialised ??= this.initialise());
  }

  onApplicationBootstrap(): Promise<void> {
    return this.open();
  }

  beforeApplicationShutdown(): Promise<void> {
    return (this.stopped ??= this.stop());
  }

  onApplicationShutdown(signal?: string): void {
    endByRepeatedSignal(signal);
  }

  /** @throws InvalidConfigurationError with everything that is wrong */
  private async initialise(): Promise<void> {
    const { settings, store } = this;
    const { problems } = settings;
    refuseSecondModule(this.modules, problems);
    requireOneStore(store, this.hostStore === undefined, this.modules, problems);
    requireDurableStore(store, settings.allowMemoryStore, problems);
    if (settings.jobs)
      this.trigger = (await problems.attemptAsync(() => findTrigger(settings.trigger, this.moduleRef))) ?? null;
    await this.register(problems);
    // A hook of the host may start runs before the worker begins.
    this.engine.ports.beforeStart = () => this.open();
    afterLazyLoads(this.lazyModules, this.modules, () => this.register(new ProblemList()));
    afterBootstrapHooks(this.modules, () => (this.started ??= this.start()));
  }

  /** Keeps the agents and tools of all modules that are there. @throws InvalidConfigurationError, nothing kept */
  private async register(problems: ProblemList): Promise<void> {
    const { settings, store, engine } = this;
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
    if (problems.all.length > 0) throw new InvalidConfigurationError(problems.all);
    this.registry.keep(agents);
    engine.ports.guardrail = guardrail;
    engine.ports.approvalResolver = approvalResolver;
    this.observe(observers);
    engine.worker.wake();
  }

  private open(): Promise<void> {
    const opening = (this.opened ??= this.openStore());
    // The next caller tries again.
    opening.catch(() => (this.opened = null));
    return opening;
  }

  private async openStore(): Promise<void> {
    await this.store.open();
    this.respectStore();
    this.engine.ports.beforeStart = null;
  }

  private async start(): Promise<void> {
    const { store, engine, settings } = this;
    // A signal may have come while the store opened.
    if (this.stopped) return;
    if (settings.engine.worker) this.letGo.push(keepProcessAlive());
    await engine.worker.start();
    if (this.stopped) return;
    if (this.trigger) {
      this.jobs = recoveryJobs(engine.recovery, settings.schedules, engine.ports);
      this.trigger.start(this.jobs);
    }
    this.logger.log(startUpLine(store.traits.name, this.registry, settings, this.trigger));
    if (settings.engine.worker) {
      this.letGo.push(watchShutdownHooks(engine.ports.clock, (message) => this.logger.warn(message)));
    }
  }

  /** What the store could not keep is refused, or becomes an error, where it comes in. */
  private respectStore(): void {
    const { maxCommitBytes, name } = this.store.traits;
    const options = this.settings.engine;
    const maxPayloadBytes = maxPayloadIn(maxCommitBytes);
    if (maxPayloadBytes >= options.maxPayloadBytes) return;
    this.logger.log(
      `${name} takes payloads of at most ${maxPayloadBytes} bytes, as its server is set up: maxPayloadBytes is that, not ${options.maxPayloadBytes}`,
    );
    options.maxPayloadBytes = maxPayloadBytes;
  }

  private async stop(): Promise<void> {
    const { engine } = this;
    const { clock, options } = engine.ports;
    await this.quietly('closing the port', () => stopListening(this.adapterHost));
    engine.stopWaiting();
    await this.quietly('stopping the recovery jobs', () => {
      for (const job of this.jobs) job.stop();
      this.trigger?.stop();
    });
    // Begins at once, so that a start of the worker that is under way claims nothing.
    const drained = this.quietly('draining the worker', () => engine.worker.drain());
    const starting = Promise.allSettled([this.opened, this.started]);
    // A database that never answers must not hold the shutdown.
    await endedWithin(clock, options.shutdownTimeoutMs, starting);
    await drained;
    await engine.answered(LAST_ANSWERS_MS);
    await this.quietly('closing the store', () => this.store.close());
    for (const end of this.letGo) end();
  }

  private async quietly(what: string, work: () => void | Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.logger.error(`Shutdown: ${what} failed (${error instanceof Error ? error.name : typeof error})`);
    }
  }

  private observe(found: readonly RunObserver[]): void {
    const { redactKeys } = this.settings;
    const unknown = [this.diagnostics, ...found].filter((observer) => !this.observed.has(observer));
    for (const observer of unknown) this.observed.add(observer);
    this.observers.push(
      ...unknown.map((observer) => (redactKeys.length === 0 ? observer : new RedactingObserver(observer, redactKeys))),
    );
  }
}

function transactionalAmong(tools: readonly RegisteredTool[]): string[] {
  return tools
    .map(({ definition }) => definition)
    .filter(({ recovery }) => recovery === 'transactional')
    .map(({ name }) => name);
}
