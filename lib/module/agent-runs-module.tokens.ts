import { ConfigurableModuleBuilder } from '@nestjs/common';
import type { AgentRunsModuleOptions } from './agent-runs-module.options.js';

/** Injection tokens of the module, the same for every loaded copy of the package: so a second `forRoot` is seen whichever copy it came from. */
export const AGENT_RUNS_STRUCTURE = Symbol.for('nestjs-agent-runs:structure');
export const AGENT_RUNS_SETTINGS = Symbol.for('nestjs-agent-runs:settings');
export const AGENT_RUNS_ENGINE = Symbol.for('nestjs-agent-runs:engine');
export const AGENT_RUNS_OBSERVERS = Symbol.for('nestjs-agent-runs:observers');

/** Optional: what a store's own module has to say at boot. */
export const AGENT_RUNS_STORE_CHECK = Symbol.for('nestjs-agent-runs:store-check');

/** @returns problems; empty when all is well */
export type StoreCheck = (facts: { transactionalTools: readonly string[] }) => string[];

/** `isGlobal` is by Nest's convention an extra of the definition; the other structural options are read by AgentRunsModule itself. */
export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } = new ConfigurableModuleBuilder<AgentRunsModuleOptions>({
  moduleName: 'AgentRuns',
})
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createAgentRunsOptions')
  .setExtras({ isGlobal: true }, (definition, { isGlobal }) => ({ ...definition, global: isGlobal }))
  .build();
