import { type ConfigurableModuleAsyncOptions, type DynamicModule, Module, type Provider } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import type { RunObserver } from '../contracts/ports/host.port.js';
import { RunStore } from '../contracts/ports/run-store.port.js';
import { AGENT_RUNS_STORE } from '../decorators/inject-run-store.decorator.js';
import { AgentRegistry } from '../discovery/agent.registry.js';
import { RegistrationExplorer } from '../discovery/registration.explorer.js';
import { RegistrationService } from '../discovery/registration.service.js';
import { createEngine, type Engine } from '../engine/engine.js';
import { RunMetrics, RunService } from '../engine/run-service.js';
import { RunRecovery } from '../engine/run-recovery.js';
import { RunWorker } from '../engine/run-worker.js';
import { InvalidConfigurationError } from '../errors/configuration.errors.js';
import { MemoryRunStore } from '../stores/memory/memory-run.store.js';
import { AsyncRunScope, Sha256Digester, SystemClock, SystemIdSource } from '../system/system-ports.js';
import { AgentRunsFeatureModule, type AgentRunsFeatureOptions } from './agent-runs-feature.module.js';
import { AgentRunsLifecycle } from './agent-runs-lifecycle.service.js';
import {
  type AgentRunsModuleOptions,
  type AgentRunsModuleStructure,
  type AgentRunsOptionsFactory,
  STRUCTURE_KEYS,
} from './agent-runs-module.options.js';
import {
  AGENT_RUNS_ENGINE,
  AGENT_RUNS_OBSERVERS,
  AGENT_RUNS_SETTINGS,
  AGENT_RUNS_STRUCTURE,
  ConfigurableModuleClass,
  MODULE_OPTIONS_TOKEN,
} from './agent-runs-module.tokens.js';
import { refuseStartsBeforeDiscovery } from './process-life.js';
import { type ModuleSettings, resolveSettings } from './module-settings.js';
import { NestEngineLog } from './nest-engine-log.js';

/**
 * What `AgentRunsModule.forRootAsync` takes: values from a factory (exactly one of `useFactory`, `useClass`,
 * `useExisting`), structure beside it.
 */
export type AgentRunsAsyncOptions = ConfigurableModuleAsyncOptions<
  AgentRunsModuleOptions,
  keyof AgentRunsOptionsFactory
> &
  AgentRunsModuleStructure;

const FACTORY_KEYS = ['useFactory', 'useClass', 'useExisting'] as const;
const ASYNC_KEYS: readonly string[] = [...FACTORY_KEYS, 'inject', 'provideInjectionTokensFrom', ...STRUCTURE_KEYS];

const providers: Provider[] = [
  AgentRunsLifecycle,
  RegistrationService,
  RegistrationExplorer,
  { provide: AgentRegistry, useFactory: () => new AgentRegistry() },
  { provide: AGENT_RUNS_OBSERVERS, useFactory: (): RunObserver[] => [] },
  {
    provide: AGENT_RUNS_SETTINGS,
    useFactory: resolveSettings,
    inject: [MODULE_OPTIONS_TOKEN, AGENT_RUNS_STRUCTURE],
  },
  {
    provide: AGENT_RUNS_STORE,
    useFactory: (store?: RunStore): RunStore => store ?? new MemoryRunStore(),
    inject: [{ token: RunStore, optional: true }],
  },
  {
    provide: AGENT_RUNS_ENGINE,
    useFactory: (settings: ModuleSettings, store: RunStore, catalog: AgentRegistry, observers: RunObserver[]): Engine =>
      createEngine({
        store,
        catalog,
        observers,
        options: settings.engine,
        clock: new SystemClock(),
        ids: new SystemIdSource(),
        digester: new Sha256Digester(),
        scope: new AsyncRunScope(),
        log: new NestEngineLog(settings.redactKeys),
        // Found in onModuleInit, together with the observers.
        guardrail: null,
        approvalResolver: null,
        beforeStart: refuseStartsBeforeDiscovery,
      }),
    inject: [AGENT_RUNS_SETTINGS, AGENT_RUNS_STORE, AgentRegistry, AGENT_RUNS_OBSERVERS],
  },
  { provide: RunService, useFactory: ({ runs }: Engine) => runs, inject: [AGENT_RUNS_ENGINE] },
  { provide: RunWorker, useFactory: ({ worker }: Engine) => worker, inject: [AGENT_RUNS_ENGINE] },
  { provide: RunRecovery, useFactory: ({ recovery }: Engine) => recovery, inject: [AGENT_RUNS_ENGINE] },
  { provide: RunMetrics, useFactory: ({ metrics }: Engine) => metrics, inject: [AGENT_RUNS_ENGINE] },
];

/**
 * Durable agent runs for this application. Imported once, in the root module. Agents and tools are found among all providers; runs live in the `RunStore`
 * that a global module (or one of `imports`) provides, else in memory.
 */
@Module({
  imports: [DiscoveryModule],
  providers,
  exports: [RunService, RunWorker, RunRecovery, RunMetrics, AGENT_RUNS_STORE],
})
export class AgentRunsModule extends ConfigurableModuleClass {
  /**
   * Values and structure in one. A wrong option does not throw here: the boot fails, with all problems of the
   * application at once.
   */
  static override forRoot(options: AgentRunsModuleOptions & AgentRunsModuleStructure = {}): DynamicModule {
    const values = Object.fromEntries(Object.entries(options).filter(([key]) => !isStructural(key)));
    const definition = super.forRoot({ ...values, isGlobal: options.isGlobal ?? true });
    return withStructure(
      { ...definition, imports: [...(definition.imports ?? []), ...(options.imports ?? [])] },
      options,
    );
  }

  /**
   * Values from a factory; structure is given here.
   * @throws InvalidConfigurationError without a factory, or with an option that is neither structure nor part of a factory
   */
  static override forRootAsync(options: AgentRunsAsyncOptions): DynamicModule {
    checkAsyncOptions(options);
    const { useFactory, useClass, useExisting, inject, imports, isGlobal = true } = options;
    const definition = super.forRootAsync({
      isGlobal,
      ...(useFactory && { useFactory }),
      ...(useClass && { useClass }),
      ...(useExisting && { useExisting }),
      ...(inject && { inject }),
      ...(imports && { imports }),
      ...(options.provideInjectionTokensFrom && { provideInjectionTokensFrom: options.provideInjectionTokensFrom }),
    });
    return withStructure(definition, options);
  }

  /** Optional: agents and tools as a module of their own. Plain providers are found as well. */
  static forFeature(options: AgentRunsFeatureOptions): DynamicModule {
    return AgentRunsFeatureModule.for(options);
  }
}

function isStructural(key: string): boolean {
  return (STRUCTURE_KEYS as readonly string[]).includes(key);
}

function withStructure(definition: DynamicModule, structure: AgentRunsModuleStructure): DynamicModule {
  return {
    ...definition,
    providers: [...(definition.providers ?? []), { provide: AGENT_RUNS_STRUCTURE, useValue: structure }],
  };
}

function checkAsyncOptions(options: AgentRunsAsyncOptions): void {
  const problems = Object.keys(options)
    .filter((key) => !ASYNC_KEYS.includes(key))
    .map(
      (key) =>
        `there is no option "${key}" here. Values are returned by the factory; known are ${ASYNC_KEYS.join(', ')}.`,
    );
  if (FACTORY_KEYS.filter((key) => options[key] !== undefined).length !== 1) {
    problems.push(`give exactly one of ${FACTORY_KEYS.join(', ')}.`);
  }
  if (problems.length > 0) {
    throw new InvalidConfigurationError(problems.map((problem) => `AgentRunsModule.forRootAsync: ${problem}`));
  }
}
