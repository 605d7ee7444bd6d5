import type { InjectionToken } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { RunStore } from '../contracts/ports/run-store.port.js';
import type { ProblemList } from '../discovery/problem-list.js';
import { AGENT_RUNS_SETTINGS } from './agent-runs-module.tokens.js';

type HostModule = ModulesContainer extends Map<string, infer M> ? M : never;

/** Dynamic modules are identified by reference: two `forRoot` calls are two engines over one store. */
export function refuseSecondModule(modules: ModulesContainer, problems: ProblemList): void {
  const count = providersOf(modules, AGENT_RUNS_SETTINGS).length;
  if (count < 2) return;
  problems.add(
    `AgentRunsModule.forRoot was imported ${count} times. Import it once, in the root module; it is global. Where a module needs its own agents and tools, use AgentRunsModule.forFeature.`,
  );
}

/** A `RunStore` that this module cannot see would be silently replaced by memory. */
export function requireOneStore(
  store: RunStore,
  isOwn: boolean,
  modules: ModulesContainer,
  problems: ProblemList,
): void {
  const providers = providersOf(modules, RunStore);
  const names = providers.map(({ name }) => name).join(', ');
  if (isOwn && providers.length > 0) {
    problems.add(
      `${names} provides RunStore, but AgentRunsModule cannot see it. Export it from a @Global() module, or give that module to AgentRunsModule.forRoot({ imports: [${names}] }).`,
    );
  }
  if (providers.length > 1)
    problems.add(`RunStore is provided ${providers.length} times, by ${names}. Runs live in one store: keep one.`);
  if (typeof (store.traits as unknown) !== 'object' || store.traits === null) {
    problems.add(
      `The RunStore ${store.constructor.name} has no traits. A store extends the class RunStore and says what it can do.`,
    );
  }
}

export function requireDurableStore(store: RunStore, allowed: boolean, problems: ProblemList): void {
  if (process.env.NODE_ENV !== 'production' || allowed || store.traits?.durable === true) return;
  problems.add(
    `NODE_ENV is production and the store ${store.traits?.name ?? store.constructor.name} does not outlive the process. Import AgentRunsTypeOrmModule.forRoot() from nestjs-agent-runs/typeorm, or set allowMemoryStore: true.`,
  );
}

function providersOf(modules: ModulesContainer, token: InjectionToken): HostModule[] {
  return [...modules.values()].filter((module) => module.providers.has(token));
}
