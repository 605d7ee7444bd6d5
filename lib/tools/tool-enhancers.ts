import 'reflect-metadata';
import { Scope, type Type } from '@nestjs/common';
import {
  EXCEPTION_FILTERS_METADATA,
  GUARDS_METADATA,
  INTERCEPTORS_METADATA,
  PIPES_METADATA,
  SCOPE_OPTIONS_METADATA,
} from '@nestjs/common/constants.js';
import { type ExternalContextCreator, ModuleRef, type ModulesContainer } from '@nestjs/core';
import type { InstanceWrapper } from '@nestjs/core/injector/instance-wrapper.js';
import type { Module } from '@nestjs/core/injector/module.js';
import { InvalidConfigurationError } from '../errors/configuration.errors.js';
import { methodOf, placeOf, type ToolHost } from './tool-host.js';

const KINDS = [
  { key: GUARDS_METADATA, word: 'guard', method: 'canActivate' },
  { key: PIPES_METADATA, word: 'pipe', method: 'transform' },
  { key: INTERCEPTORS_METADATA, word: 'interceptor', method: 'intercept' },
  { key: EXCEPTION_FILTERS_METADATA, word: 'filter', method: 'catch' },
] as const;

type Kind = (typeof KINDS)[number];

/** What to write on the callback that Nest is handed: everything bound to the method, and what it would not find of the class. */
export interface ToolEnhancers {
  guards: unknown[];
  pipes: unknown[];
  interceptors: unknown[];
  /** Of class and method, in the order in which they are declared. */
  filters: unknown[];
  /** Whether class or method have any of a kind. */
  has: { guards: boolean; pipes: boolean; interceptors: boolean; filters: boolean };
}

/** How Nest finds the module of an instance; private there, so every step is optional here. */
interface ModuleLookup {
  getHostModuleKey?(instance: object, classRef: unknown, inquirerId?: string): string;
  getContextModuleKey?(classRef: unknown): string;
}

/**
 * The guards, pipes, interceptors and filters of a tool method, such that none is lost. Nest's context creator looks enhancer classes up among the
 * injectables of a module and silently leaves out those it does not find there, which depends on how the provider was registered and on the version of Nest.
 * Whatever it would leave out is made here, in the module of the provider, and handed over as an instance.
 */
export class ToolEnhancerResolver {
  private readonly created = new Map<Module, Map<unknown, Promise<unknown>>>();

  constructor(
    private readonly modules: ModulesContainer,
    private readonly creator: ExternalContextCreator,
  ) {}

  /** @throws InvalidConfigurationError for an enhancer that lives in a request or cannot be created */
  async resolve(host: ToolHost): Promise<ToolEnhancers> {
    const found = this.moduleThatNestLooksIn(host);
    const [guards, pipes, interceptors, filters] = await Promise.all(
      KINDS.map((kind) => this.resolveKind(kind, host, found)),
    );
    const has = (list: Resolved | undefined): boolean => list !== undefined && list.declared > 0;
    return {
      guards: guards?.callback ?? [],
      pipes: pipes?.callback ?? [],
      interceptors: interceptors?.callback ?? [],
      filters: [...(filters?.ofClass ?? []), ...(filters?.ofMethod ?? [])],
      has: { guards: has(guards), pipes: has(pipes), interceptors: has(interceptors), filters: has(filters) },
    };
  }

  private async resolveKind(kind: Kind, host: ToolHost, found: Module | undefined): Promise<Resolved> {
    const ofClass = (Reflect.getMetadata(kind.key, host.classRef) as unknown[] | undefined) ?? [];
    const ofMethod = (Reflect.getMetadata(kind.key, methodOf(host)) as unknown[] | undefined) ?? [];
    const resolve = (enhancer: unknown) => this.resolveOne(kind, enhancer, host, found);
    const classResolved = await Promise.all(ofClass.map(resolve));
    const methodResolved = await Promise.all(ofMethod.map(resolve));
    // Nest reads the class's list itself; only what it cannot find of it is repeated on the callback.
    const missing = classResolved.filter((enhancer, index) => enhancer !== ofClass[index]);
    return {
      declared: ofClass.length + ofMethod.length,
      callback: [...missing, ...methodResolved],
      ofClass: classResolved,
      ofMethod: methodResolved,
    };
  }

  /** The enhancer itself where Nest finds it, else an instance. */
  private async resolveOne(kind: Kind, enhancer: unknown, host: ToolHost, found: Module | undefined): Promise<unknown> {
    if (
      typeof enhancer !== 'function' ||
      typeof (enhancer as unknown as Record<string, unknown>)[kind.method] === 'function'
    )
      return enhancer;
    const known = found?.injectables.get(enhancer as Type);
    refuseScoped(kind, enhancer, host, known);
    return known === undefined ? this.create(kind, enhancer as Type, host) : enhancer;
  }

  private create(kind: Kind, type: Type, host: ToolHost): Promise<unknown> {
    const module = host.wrapper.host as Module;
    const own = this.created.get(module) ?? new Map<unknown, Promise<unknown>>();
    this.created.set(module, own);
    const instance = own.get(type) ?? instantiate(kind, type, module, host);
    own.set(type, instance);
    return instance;
  }

  private moduleThatNestLooksIn({ instance, classRef }: ToolHost): Module | undefined {
    const lookup = this.creator as unknown as ModuleLookup;
    const key = lookup.getHostModuleKey?.(instance, classRef) || lookup.getContextModuleKey?.(classRef);
    return key === undefined || key === '' ? undefined : this.modules.get(key);
  }
}

interface Resolved {
  declared: number;
  callback: unknown[];
  ofClass: unknown[];
  ofMethod: unknown[];
}

async function instantiate(kind: Kind, type: Type, module: Module, host: ToolHost): Promise<unknown> {
  const moduleRef = module.getProviderByKey<ModuleRef>(ModuleRef).instance;
  try {
    return await moduleRef.create(type);
  } catch (cause) {
    throw new InvalidConfigurationError(
      [
        `The ${kind.word} ${type.name} of ${placeOf(host)} could not be created in ${module.name}: ${(cause as Error).message}`,
      ],
      cause,
    );
  }
}

/** A tool runs outside of any request: a scoped enhancer would be a placeholder whose constructor never ran. */
function refuseScoped(kind: Kind, type: unknown, host: ToolHost, known: InstanceWrapper | undefined): void {
  const declared = (Reflect.getMetadata(SCOPE_OPTIONS_METADATA, type as object) as { scope?: Scope } | undefined)
    ?.scope;
  const scoped = known
    ? !known.isDependencyTreeStatic() || known.isTransient
    : declared !== undefined && declared !== Scope.DEFAULT;
  if (!scoped) return;
  throw new InvalidConfigurationError([
    `The ${kind.word} ${(type as Type).name} of ${placeOf(host)} is request-scoped or transient, or depends on something that is. Tools run outside of requests: give it the default scope and take the actor from the ToolContext.`,
  ]);
}
