import type { HttpAdapterHost, LazyModuleLoader, ModulesContainer } from '@nestjs/core';
import { constants } from 'node:os';
import { StoreUnavailableError } from '../errors/store.errors.js';
import type { Clock } from '../contracts/ports/system.port.js';
import { LONGEST_TIMER_MS } from '../contracts/duration.js';

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

export const WATCH_AFTER_MS = 1_000;

/**
 * Warns when a SIGTERM would kill this process in the middle of runs. Nest does not tell whether
 * `enableShutdownHooks()` was called, but it listens to the signal when it was; so does a host that closes the
 * application by itself. Asked shortly after boot, because an application context is given to the host only after its
 * bootstrap hooks.
 *
 * @returns cancels it
 */
export function watchShutdownHooks(clock: Clock, warn: (message: string) => void): () => void {
  return clock.after(WATCH_AFTER_MS, () => {
    // Windows has no SIGTERM.
    if (process.platform === 'win32' || process.listenerCount('SIGTERM') > 0) return;
    warn(
      'Nobody listens to SIGTERM: runs will not be handed over when this process is stopped, others take them over when their lease has expired. Call app.enableShutdownHooks() after creating the application.',
    );
  });
}

/**
 * Keeps the process alive: nothing else of a worker does, not even its connections to a database that has gone.
 * @returns lets go of it
 */
export function keepProcessAlive(): () => void {
  const handle = setInterval(() => undefined, LONGEST_TIMER_MS);
  return () => clearInterval(handle);
}

/** Closes the port, so that the next process can have it while this one drains. Connections that are open stay so, and are answered. */
export function stopListening({ httpAdapter }: Partial<Pick<HttpAdapterHost, 'httpAdapter'>>): void {
  const server = httpAdapter?.getHttpServer?.() as { listening?: boolean; close?: () => void } | undefined;
  if (server?.listening === true) server.close?.();
}

/**
 * Nest ends the process by sending itself the signal again, which the kernel ignores in a container's first process, where nobody listens to it. A tool that
 * ignores its own signal would keep that process until it is killed.
 */
export function endByRepeatedSignal(signal: string | undefined): void {
  const number = constants.signals[signal as NodeJS.Signals];
  if (process.pid !== 1 || number === undefined) return;
  process.once(signal as NodeJS.Signals, () => process.exit(128 + number));
}
