import { Inject, Injectable } from '@nestjs/common';
import { ApplicationConfig, ExternalContextCreator, ModulesContainer, type NestContainer } from '@nestjs/core';
import type { ApprovalResolver, InputGuardrail, RunObserver } from '../contracts/ports/host.port.js';
import { ToolEnhancerResolver } from '../tools/tool-enhancers.js';
import type { RegisteredAgent } from './agent.registry.js';
import { buildAgents } from './build-agents.js';
import { buildTools } from './build-tools.js';
import type { ProblemList } from './problem-list.js';
import type { RegisteredTool } from './tool-catalog.js';
import { RegistrationExplorer } from './registration.explorer.js';
import type { RegistrationSettings } from './registration-settings.js';

export interface Registration {
  agents: RegisteredAgent[];
  tools: RegisteredTool[];
  observers: RunObserver[];
  /** Null = nothing is screened. */
  guardrail: InputGuardrail | null;
  /** Null = people decide all approvals. */
  approvalResolver: ApprovalResolver | null;
}

/** Explores, checks and builds, once, in `onModuleInit`. All problems of one boot come out together. */
@Injectable()
export class RegistrationService {
  constructor(
    @Inject(RegistrationExplorer) private readonly explorer: RegistrationExplorer,
    @Inject(ModulesContainer) private readonly modules: ModulesContainer,
    @Inject(ExternalContextCreator) private readonly withGlobals: ExternalContextCreator,
  ) {}

  async register(settings: RegistrationSettings, problems: ProblemList): Promise<Registration> {
    const found = this.explorer.explore(problems);
    const withoutGlobals = creatorWithoutGlobals(this.modules);
    const stock = await buildTools(found, {
      settings,
      problems,
      enhancers: new ToolEnhancerResolver(this.modules, withoutGlobals),
      creators: {
        creator: settings.globalEnhancers ? this.withGlobals : withoutGlobals,
        pipeCreator: withoutGlobals,
        global: settings.globalEnhancers,
      },
    });
    const agents = buildAgents(found.agents, stock, settings, problems);
    return {
      agents,
      tools: stock.tools,
      observers: found.observers,
      guardrail: onlyOne(found.guardrails, '@ScreenInput', 'guardrail', problems),
      approvalResolver: onlyOne(found.resolvers, '@ResolveApprovals', 'approval resolver', problems),
    };
  }
}

function onlyOne<T extends object>(
  found: readonly T[],
  decorator: string,
  what: string,
  problems: ProblemList,
): T | null {
  if (found.length > 1) {
    const names = found.map((provider) => provider.constructor.name).join(', ');
    problems.add(
      `Several providers carry ${decorator}: ${names}. An application has one ${what}; let it ask the others.`,
    );
  }
  return found[0] ?? null;
}

/**
 * The injected creator also runs APP_GUARD and APP_INTERCEPTOR, and a guard that looks for a request would deny every tool call. This one has
 * the application's modules and a configuration without anything global. `fromContainer` needs no more of a container than these two.
 */
function creatorWithoutGlobals(modules: ModulesContainer): ExternalContextCreator {
  const container = { applicationConfig: new ApplicationConfig(), getModules: () => modules };
  return ExternalContextCreator.fromContainer(container as unknown as NestContainer);
}
