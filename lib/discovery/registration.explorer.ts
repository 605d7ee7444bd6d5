import { Inject, Injectable, Scope } from '@nestjs/common';
import { SCOPE_OPTIONS_METADATA } from '@nestjs/common/constants.js';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import type { InstanceWrapper } from '@nestjs/core/injector/instance-wrapper.js';
import type { ApprovalResolver, InputGuardrail, RunObserver } from '../contracts/ports/host.port.js';
import type { AgentToolOptions } from '../decorators/agent-tool.options.js';
import type { AgentOptions } from '../decorators/agent.options.js';
import { MetadataAccessor } from '../decorators/metadata.accessor.js';
import { placeOf, type ToolHost } from '../tools/tool-host.js';
import type { ProblemList } from './problem-list.js';

type ClassRef = abstract new (...args: never[]) => unknown;

export interface ExploredAgent {
  classRef: ClassRef;
  options: AgentOptions;
}

export interface ExploredTool {
  host: ToolHost;
  options: AgentToolOptions;
}

export interface ExploredProbe {
  host: ToolHost;
  tool: string;
}

export interface Exploration {
  agents: ExploredAgent[];
  tools: ExploredTool[];
  probes: ExploredProbe[];
  observers: RunObserver[];
  guardrails: InputGuardrail[];
  resolvers: ApprovalResolver[];
  /** Tools of classes that were refused: an agent that names one must not be blamed for it. */
  refused: BrokenTool[];
}

/** A tool that is a problem of its own. */
export interface BrokenTool {
  classRef: ClassRef;
  name: string | undefined;
}

/**
 * Finds agents, tools, probes, observers, guardrail and approval resolver among the providers of the whole application: class, factory and value providers,
 * subclasses included. Reads nothing from controllers; a decorator there is a problem.
 */
@Injectable()
export class RegistrationExplorer {
  constructor(
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(MetadataScanner) private readonly scanner: MetadataScanner,
  ) {}

  explore(problems: ProblemList): Exploration {
    const found: Exploration = {
      agents: [],
      tools: [],
      probes: [],
      observers: [],
      guardrails: [],
      resolvers: [],
      refused: [],
    };
    const seen = new Set<unknown>();
    for (const wrapper of this.discovery.getProviders()) {
      const classRef = classOf(wrapper);
      // An alias is found as what it stands for; a class in the providers of several modules counts once.
      if (classRef === undefined || wrapper.isAlias) continue;
      const identity = wrapper.token === classRef ? classRef : instanceOf(wrapper);
      if (seen.has(identity)) continue;
      if (this.readProvider(wrapper, classRef, found, problems)) seen.add(identity);
    }
    for (const wrapper of this.discovery.getControllers()) this.refuseController(classOf(wrapper), problems);
    return found;
  }

  /** Whether there was anything in it. */
  private readProvider(
    wrapper: InstanceWrapper,
    classRef: ClassRef,
    found: Exploration,
    problems: ProblemList,
  ): boolean {
    const agent = MetadataAccessor.agent(classRef);
    const observes = MetadataAccessor.observesRuns(classRef);
    const screens = MetadataAccessor.screensInput(classRef);
    const resolves = MetadataAccessor.resolvesApprovals(classRef);
    const methods = this.decoratedMethods(classRef, problems);
    if (agent === undefined && !observes && !screens && !resolves && methods.length === 0) return false;
    const toolsOf = (methodName: string): AgentToolOptions | undefined =>
      MetadataAccessor.tool((classRef.prototype as Record<string, unknown>)[methodName]);
    if (refuseScoped(wrapper, classRef, problems)) {
      found.refused.push(...methods.map((methodName) => ({ classRef, name: toolsOf(methodName)?.name })));
      return true;
    }
    const instance = instanceOf(wrapper) as object;
    if (agent !== undefined && !found.agents.some((known) => known.classRef === classRef)) {
      found.agents.push({ classRef, options: agent });
    }
    if (observes && hasMethod(instance, 'onEvent', `${classRef.name} carries @ObserveRuns`, problems)) {
      found.observers.push(instance as RunObserver);
    }
    if (screens && hasMethod(instance, 'screen', `${classRef.name} carries @ScreenInput`, problems)) {
      found.guardrails.push(instance as InputGuardrail);
    }
    if (resolves && hasMethod(instance, 'resolve', `${classRef.name} carries @ResolveApprovals`, problems)) {
      found.resolvers.push(instance as ApprovalResolver);
    }
    for (const methodName of methods) {
      const host: ToolHost = { wrapper, instance, classRef, methodName };
      const options = toolsOf(methodName);
      if (options !== undefined) found.tools.push({ host, options });
      const tool = MetadataAccessor.probedTool((classRef.prototype as Record<string, unknown>)[methodName]);
      if (tool !== undefined) found.probes.push({ host, tool });
    }
    return true;
  }

  private decoratedMethods(classRef: ClassRef, problems: ProblemList): string[] {
    const prototype = classRef.prototype as object | undefined;
    if (typeof prototype !== 'object' || prototype === null) return [];
    for (const methodName of replaced(prototype)) {
      problems.add(
        `${placeOf({ classRef, methodName })} is decorated as a tool or probe, but a decorator above replaced the method without its metadata, guards included. Put @AgentTool or @RecoverTool and its enhancers above that decorator.`,
      );
    }
    return this.scanner.getAllMethodNames(prototype).filter((methodName) => {
      if (isDecorated((prototype as Record<string, unknown>)[methodName])) return true;
      const hidden = overridden(prototype, methodName);
      if (hidden) {
        problems.add(
          `${placeOf({ classRef, methodName })} overrides ${hidden.name}.${methodName}, which is decorated, without decorators of its own. Repeat @AgentTool or @RecoverTool and its guards on it.`,
        );
      }
      return false;
    });
  }

  private refuseController(classRef: ClassRef | undefined, problems: ProblemList): void {
    const prototype = classRef?.prototype as Record<string, unknown> | undefined;
    if (classRef === undefined || typeof prototype !== 'object') return;
    for (const methodName of this.scanner.getAllMethodNames(prototype)) {
      if (isDecorated(prototype[methodName])) {
        problems.add(
          `${placeOf({ classRef, methodName })} is decorated as a tool or probe, but ${classRef.name} is a controller. Move the method to a provider.`,
        );
      }
    }
  }
}

function isDecorated(method: unknown): boolean {
  return MetadataAccessor.tool(method) !== undefined || MetadataAccessor.probedTool(method) !== undefined;
}

/** Methods of the class, or of those further up, that lost what their decorators said about them. */
function replaced(prototype: object): string[] {
  const names: string[] = [];
  for (let at: object | null = prototype; at; at = Object.getPrototypeOf(at) as object | null)
    for (const name of MetadataAccessor.decoratedMethods(at))
      if (!isDecorated(Object.getOwnPropertyDescriptor(at, name)?.value)) names.push(String(name));
  return names;
}

/** The class further up whose decorated method an undecorated one hides. */
function overridden(prototype: object, methodName: string): ClassRef | undefined {
  for (let above = Object.getPrototypeOf(prototype) as object | null; above; above = Object.getPrototypeOf(above)) {
    if (!Object.hasOwn(above, methodName)) continue;
    const method = Object.getOwnPropertyDescriptor(above, methodName)?.value as unknown;
    if (isDecorated(method)) return above.constructor as ClassRef;
  }
  return undefined;
}

function hasMethod(instance: object, name: string, what: string, problems: ProblemList): boolean {
  if (typeof (instance as Record<string, unknown>)[name] === 'function') return true;
  problems.add(`${what} but has no method ${name}().`);
  return false;
}

function refuseScoped(wrapper: InstanceWrapper, classRef: ClassRef, problems: ProblemList): boolean {
  const declared = Reflect.getMetadata(SCOPE_OPTIONS_METADATA, classRef) as { scope?: Scope } | undefined;
  const request = !wrapper.isDependencyTreeStatic() || declared?.scope === Scope.REQUEST;
  const transient = wrapper.isTransient || declared?.scope === Scope.TRANSIENT;
  if (!request && !transient) return false;
  // Undefined, whatever the typing says, for a provider without any.
  const all = wrapper.getEnhancersMetadata() as InstanceWrapper[] | undefined;
  const enhancers = (all ?? []).filter((enhancer) => !enhancer.isDependencyTreeStatic());
  const because =
    enhancers.length > 0
      ? `request-scoped, because its ${enhancers.map((enhancer) => `${enhancer.subtype ?? 'enhancer'} ${String(enhancer.name)}`).join(', ')} is`
      : request
        ? 'request-scoped, or depends on a request-scoped provider'
        : 'transient';
  problems.add(
    `${classRef.name} is ${because}. Agents, tools and observers live outside of requests: use the default scope and take the actor from the ToolContext.`,
  );
  return true;
}

/** As Nest does it: factories and values are known by what they gave, classes by themselves. */
function classOf(wrapper: InstanceWrapper): ClassRef | undefined {
  const given = !wrapper.metatype || wrapper.inject;
  const classRef: unknown = given ? (instanceOf(wrapper) as object | undefined)?.constructor : wrapper.metatype;
  return typeof classRef === 'function' && classRef !== Object && classRef !== Function
    ? (classRef as ClassRef)
    : undefined;
}

function instanceOf(wrapper: InstanceWrapper): unknown {
  const instance = wrapper.instance as unknown;
  return typeof instance === 'object' && instance !== null ? instance : undefined;
}
