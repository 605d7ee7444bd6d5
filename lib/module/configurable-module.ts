import { ConfigurableModuleBuilder } from '@nestjs/common';
import type { AgentRunsModuleOptions } from './agent-runs-module.options.js';

/** `isGlobal` is by Nest's convention an extra of the definition; the other structural options are read by AgentRunsModule itself. */
export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } = new ConfigurableModuleBuilder<AgentRunsModuleOptions>({
  moduleName: 'AgentRuns',
})
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createAgentRunsOptions')
  .setExtras({ isGlobal: true }, (definition, { isGlobal }) => ({ ...definition, global: isGlobal }))
  .build();
