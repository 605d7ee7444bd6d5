import type { LazyModuleLoader, ModulesContainer } from '@nestjs/core';
import { StoreUnavailableError } from '../errors/store.errors.js';

/** What a start is answered with until agents and tools have been found. */
export async function refuseStartsBeforeDiscovery(): Promise<void> {
  throw new StoreUnavailableError(
    'The agents of this application are not found yet. Start runs in onModuleInit of a module that imports AgentRunsModule, or later.',
  );
}

type HostModule = ModulesContainer extends Map<string, infer M> ? M : never;

interface ModuleClass {
  onApplicationBootstrap?: () => unknown;
}

/**
 * Does the work once every `onApplicationBootstrap` hook of the application has ended, and before `init` resolves. Nest tells nobody when that is. It calls
 * the hooks module by module, the one nearest to the root last, and in a module those of its class after all others: that last hook is extended here.
 * To be called in `onModuleInit`.
 */
export function afterBootstrapHooks(modules: ModulesContainer, work: () => Promise<void>): void {
  const last = modulesInHookOrder(modules).filter(isClassHooked).at(-1);
  const instance = last?.instance as ModuleClass | undefined;
  if (!instance) return;
  const { onApplicationBootstrap } = instance;
  Object.defineProperty(instance, 'onApplicationBootstrap', {
    configurable: true,
    value: async () => {
      await onApplicationBootstrap?.call(instance);
      await work();
    },
  });
}

/** Modules that were loaded lazily have no distance, and no hooks. */
function modulesInHookOrder(modules: ModulesContainer): HostModule[] {
  return [...modules.values()].filter(({ distance }) => distance > 0).sort((a, b) => b.distance - a.distance);
}

/** Nest calls no hook of a class that needs something of a request. */
function isClassHooked({ metatype, providers }: HostModule): boolean {
  const host = providers.get(metatype);
  return (
    host !== undefined && host.isDependencyTreeStatic() && typeof host.instance === 'object' && host.instance !== null
  );
}

/** Does the work whenever modules were loaded lazily, before `load` resolves: Nest calls no hooks for them. */
export function afterLazyLoads(loader: LazyModuleLoader, modules: ModulesContainer, work: () => Promise<void>): void {
  const load = loader.load.bind(loader);
  let known = modules.size;
  loader.load = async (...given) => {
    const loaded = await load(...given);
    const found = modules.size;
    if (found !== known) await work();
    known = found;
    return loaded;
  };
}
