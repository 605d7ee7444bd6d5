// A Nest application around AgentRunsModule, without timers, and a way to its tools that needs no engine.
import 'reflect-metadata';
import {
  type DynamicModule,
  type INestApplicationContext,
  Module,
  type ModuleMetadata,
  type Provider,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { AgentDefinition, ToolDefinition } from '../../lib/contracts/agent-definition.js';
import type { JsonObject } from '../../lib/contracts/json.js';
import type { ModelClient } from '../../lib/contracts/ports/model-client.port.js';
import type { ToolContext, ToolEntry } from '../../lib/contracts/ports/tool-caller.port.js';
import { Agent } from '../../lib/decorators/provider.decorators.js';
import { AgentRegistry } from '../../lib/discovery/agent.registry.js';
import type { AgentRunsModuleOptions, AgentRunsModuleStructure } from '../../lib/module/agent-runs-module.options.js';
import { AgentRunsModule } from '../../lib/module/agent-runs.module.js';

export const silentModel: ModelClient = {
  name: 'silent',
  generate: () => Promise.reject(new Error('no model in this test')),
};

/** What most tests want: no timers, one model. */
export const quiet: AgentRunsModuleOptions & AgentRunsModuleStructure = {
  trigger: false,
  models: { default: silentModel },
};

export interface HostOptions {
  providers?: Provider[];
  imports?: ModuleMetadata['imports'];
  controllers?: ModuleMetadata['controllers'];
  /** Default: {@link quiet}. */
  runs?: AgentRunsModuleOptions & AgentRunsModuleStructure;
  /** Instead of `AgentRunsModule.forRoot(runs)`. */
  runsModule?: DynamicModule;
}

export function hostModule({
  providers = [],
  imports = [],
  controllers = [],
  runs,
  runsModule,
}: HostOptions): DynamicModule {
  @Module({})
  class HostModule {}
  return {
    module: HostModule,
    imports: [...imports, runsModule ?? AgentRunsModule.forRoot(runs ?? quiet)],
    providers,
    controllers,
  };
}

export function bootHost(options: HostOptions): Promise<INestApplicationContext> {
  return NestFactory.createApplicationContext(hostModule(options), { logger: false, abortOnError: false });
}

/** The problems that a boot fails with; fails when it boots. */
export async function bootProblems(options: HostOptions): Promise<string[]> {
  let app: INestApplicationContext;
  try {
    app = await bootHost(options);
  } catch (error) {
    const { code, problems } = error as { code?: string; problems?: string[] };
    if (code !== 'INVALID_CONFIGURATION') throw error;
    return problems as string[];
  }
  await app.close();
  throw new Error('The application booted.');
}

/** An agent class with the given tools. */
export function agentWith(tools: unknown[], options: Partial<Parameters<typeof Agent>[0]> = {}): new () => object {
  @Agent({ name: 'support', version: '1', instructions: 'Help.', tools: tools as never[], ...options })
  class SupportAgent {}
  return SupportAgent;
}

export function agentOf(app: INestApplicationContext, name = 'support', version?: string): AgentDefinition {
  const definition = app.get(AgentRegistry, { strict: false }).find(name, version);
  if (!definition) throw new Error(`There is no agent ${name}.`);
  return definition;
}

export function toolOf(app: INestApplicationContext, name: string): ToolDefinition {
  const found = agentOf(app).tools.find((tool) => tool.name === name);
  if (!found) throw new Error(`There is no tool ${name}.`);
  return found;
}

export interface Called {
  /** How often the method was about to be entered. */
  entered: number;
  value?: unknown;
  error?: unknown;
}

/** Calls a tool as the engine does. */
export async function callTool(
  tool: ToolDefinition,
  input: JsonObject = {},
  { context = {}, onEnter }: { context?: Partial<ToolContext>; onEnter?: ToolEntry['onEnter'] } = {},
): Promise<Called> {
  const called: Called = { entered: 0 };
  const full: ToolContext = {
    runId: 'run-1',
    sessionId: null,
    agent: 'support',
    operationId: 'run-1/r1.m1.t0',
    callId: 'call_1',
    attempt: 1,
    signal: new AbortController().signal,
    deadline: null,
    actor: { id: 'alice', roles: ['refunds'] },
    ask: () => Promise.reject(new Error('nobody to ask in this test')),
    requestApproval: () => Promise.reject(new Error('nobody to ask in this test')),
    step: async (_key, work) => JSON.parse(JSON.stringify(await work())) as never,
    ...context,
  };
  const entry: ToolEntry = {
    onEnter: async () => {
      called.entered++;
      return onEnter?.();
    },
  };
  try {
    called.value = await tool.caller.call(input, full, entry);
  } catch (error) {
    called.error = error;
  }
  return called;
}
