import { type DynamicModule, type FactoryProvider, Module, type ModuleMetadata, type Type } from '@nestjs/common';
import { MetadataScanner, ModuleRef, ModulesContainer } from '@nestjs/core';
import { MetadataAccessor } from '../decorators/metadata.accessor.js';
import { InvalidConfigurationError } from '../errors/configuration.errors.js';

/** What `AgentRunsModule.forFeature` takes. */
export interface AgentRunsFeatureOptions {
  /** Classes with `@AgentTool` methods. */
  tools?: Type[];
  /** Classes with `@Agent`. */
  agents?: Type[];
  /** Modules that export what these classes inject. */
  imports?: ModuleMetadata['imports'];
}

const OPTION_KEYS = ['tools', 'agents', 'imports'];

/**
 * Provides and exports agents and tools. A class that some module of the application already provides is left to it, so that naming it here as well changes
 * nothing; any other is made here, from what `imports` export.
 */
@Module({})
export class AgentRunsFeatureModule {
  /** @throws InvalidConfigurationError for classes without decorators and unknown options */
  static for(options: AgentRunsFeatureOptions): DynamicModule {
    const { tools = [], agents = [], imports = [] } = options;
    checkFeature(options, tools, agents);
    const classes = [...new Set([...tools, ...agents])];
    return { module: AgentRunsFeatureModule, imports, providers: classes.map(providerOf), exports: classes };
  }
}

function providerOf(type: Type): FactoryProvider {
  return {
    provide: type,
    useFactory: (moduleRef: ModuleRef, modules: ModulesContainer): unknown =>
      isProvidedElsewhere(type, modules) ? undefined : moduleRef.create(type),
    inject: [ModuleRef, ModulesContainer],
  };
}

function isProvidedElsewhere(type: Type, modules: ModulesContainer): boolean {
  return [...modules.values()].some(
    (module) => module.metatype !== AgentRunsFeatureModule && module.providers.has(type),
  );
}

function checkFeature(options: AgentRunsFeatureOptions, tools: Type[], agents: Type[]): void {
  const problems = Object.keys(options)
    .filter((key) => !OPTION_KEYS.includes(key))
    .map((key) => `there is no option "${key}"; known are ${OPTION_KEYS.join(', ')}.`);
  for (const type of agents) {
    if (MetadataAccessor.agent(type) === undefined)
      problems.push(`agents contains ${nameOf(type)}, which has no @Agent.`);
  }
  for (const type of tools) {
    if (!hasTools(type))
      problems.push(`tools contains ${nameOf(type)}, which has no @AgentTool or @RecoverTool method.`);
  }
  if (problems.length > 0) {
    throw new InvalidConfigurationError(problems.map((problem) => `AgentRunsModule.forFeature: ${problem}`));
  }
}

function hasTools(type: Type): boolean {
  const prototype = (type as Type | undefined)?.prototype as Record<string, unknown> | undefined;
  if (prototype === undefined) return false;
  return new MetadataScanner()
    .getAllMethodNames(prototype)
    .map((name) => prototype[name])
    .some((method) => MetadataAccessor.tool(method) !== undefined || MetadataAccessor.probedTool(method) !== undefined);
}

function nameOf(type: Type | undefined): string {
  return type?.name ?? String(type);
}
