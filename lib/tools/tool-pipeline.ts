import 'reflect-metadata';
import { Catch, type ExceptionFilter } from '@nestjs/common';
import {
  EXCEPTION_FILTERS_METADATA,
  GUARDS_METADATA,
  INTERCEPTORS_METADATA,
  PIPES_METADATA,
} from '@nestjs/common/constants.js';
import type { ExternalContextCreator } from '@nestjs/core';
import { isObservable, lastValueFrom } from 'rxjs';
import type { EnteredContext, ToolContext, ToolEntry } from '../contracts/ports/tool-caller.port.js';
import { InvalidToolArgumentsError, ToolDeniedError } from '../errors/run.errors.js';
import type { ToolEnhancers } from './tool-enhancers.js';
import {
  methodOf,
  placeOf,
  TOOL_ARGUMENTS_METADATA,
  TOOL_PARAMETERS_FACTORY,
  type ToolHost,
  type ToolParameters,
} from './tool-host.js';

export interface PipelineCreators {
  /** Runs guards, interceptors and filters; with or without the global ones. */
  creator: ExternalContextCreator;
  /** Runs pipes; never the global ones, because they would change what was shown and digested. */
  pipeCreator: ExternalContextCreator;
  global: boolean;
}

export interface PipelineCall {
  context: ToolContext;
  entry: ToolEntry;
  /** A fresh value for the method. */
  input: unknown;
  /** Another one for guards and interceptors, so that what they do to it changes nothing. */
  shownInput: unknown;
}

/** The state of one call on its way. */
interface Passage extends PipelineCall {
  refusedBy: 'guard' | 'pipe' | null;
  refusal: unknown;
  /** What reached the filters. */
  thrown: { error: unknown } | null;
  /** The one call of `onEnter`; shared by the entries of a retrying interceptor. */
  entering: Promise<EnteredContext | void> | null;
  entered: boolean;
  /** The call has its result: nothing may begin any more. */
  over: boolean;
  entryFailure: { error: unknown } | null;
}

type Layer = (input: unknown, context: ToolContext) => Promise<unknown>;

/**
 * The way of one call through the host's enhancers, built once per tool: filters around (guards, then interceptors
 * around (pipes, then the method)). Each of the layers is made by Nest's ExternalContextCreator with the context type
 * `agent`; they are separate so that it is known what refused a call.
 *
 * Promises: the method is entered only after guards and pipes have passed and `onEnter` has resolved; a failure of
 * `onEnter` leaves the pipeline as it is, whatever interceptors and filters make of it; a refusal stays a refusal even
 * if a filter answers it with a value.
 */
export class ToolPipeline {
  private readonly passages = new WeakMap<ToolContext, Passage>();
  private readonly guards: Layer | null;
  private readonly interceptors: Layer;
  private readonly pipes: ((input: unknown, context: ToolContext) => Promise<unknown[]>) | null;
  private readonly filters: Layer | null;
  /** Nothing of the host's stands around the method. */
  readonly isPlain: boolean;

  constructor(
    private readonly host: ToolHost,
    enhancers: ToolEnhancers,
    private readonly parameters: ToolParameters,
    creators: PipelineCreators,
    /** Whether an interceptor may enter the method again within one call. */
    private readonly mayReenter: boolean,
  ) {
    const { has } = enhancers;
    this.guards =
      has.guards || creators.global
        ? this.layer(creators.creator, 'guards', { [GUARDS_METADATA]: enhancers.guards }, () =>
            Promise.resolve(undefined),
          )
        : null;
    const innermost: Layer = (_input, context) => this.enter(this.passageOf(context));
    this.interceptors =
      has.interceptors || creators.global
        ? this.layer(creators.creator, 'interceptors', { [INTERCEPTORS_METADATA]: enhancers.interceptors }, innermost)
        : innermost;
    this.pipes =
      has.pipes || parameters.decorated
        ? (this.layer(creators.pipeCreator, 'pipes', { [PIPES_METADATA]: enhancers.pipes }, (...args: unknown[]) =>
            Promise.resolve(args),
          ) as (input: unknown, context: ToolContext) => Promise<unknown[]>)
        : null;
    const inner: Layer = (input, context) => this.caught(input, context);
    // Without a filter of its own there is nothing to run, and Nest's handler would log every error of a tool.
    this.filters =
      has.filters || creators.global
        ? this.layer(
            creators.creator,
            'filters',
            { [EXCEPTION_FILTERS_METADATA]: creators.global ? enhancers.filters : [rethrow, ...enhancers.filters] },
            inner,
          )
        : null;
    this.isPlain = !this.guards && this.interceptors === innermost && !this.pipes && !this.filters;
  }

  run(call: PipelineCall): Promise<unknown> {
    return this.isPlain ? this.enterPlainly(call) : this.runThrough(call);
  }

  private async enterPlainly({ input, context, entry }: PipelineCall): Promise<unknown> {
    return this.execute([input], context, await entry.onEnter());
  }

  private async execute(args: unknown[], context: ToolContext, added: EnteredContext | void): Promise<unknown> {
    args[this.parameters.contextIndex] = added ? contextWith(context, added) : context;
    return settled(
      await methodOf(this.host).apply(this.host.instance, args as Parameters<ReturnType<typeof methodOf>>),
    );
  }

  private async runThrough(call: PipelineCall): Promise<unknown> {
    const passage: Passage = {
      refusedBy: null,
      refusal: undefined,
      thrown: null,
      entering: null,
      entered: false,
      over: false,
      entryFailure: null,
      ...call,
    };
    this.passages.set(call.context, passage);
    let failure: { error: unknown } | null = null;
    let value: unknown;
    try {
      value = await this.filtered(passage);
    } catch (error) {
      failure = { error };
    }
    passage.over = true;
    if (passage.entryFailure) throw passage.entryFailure.error;
    if (passage.refusedBy === 'guard') throw denied(failure?.error ?? passage.refusal);
    if (passage.refusedBy === 'pipe' && !passage.entered && (failure || passage.thrown)) {
      throw invalidArguments(failure?.error ?? passage.refusal);
    }
    if (failure) throw failure.error;
    return value;
  }

  /** A filter that answers with nothing has not handled the error, at once or later. */
  private async filtered(passage: Passage): Promise<unknown> {
    const { shownInput, context } = passage;
    if (!this.filters) return this.guarded(shownInput, context);
    const value = await settled(await this.filters(shownInput, context));
    if (passage.thrown && value === undefined) throw passage.thrown.error;
    return value;
  }

  private async caught(input: unknown, context: ToolContext): Promise<unknown> {
    try {
      return await this.guarded(input, context);
    } catch (error) {
      this.passageOf(context).thrown = { error };
      throw error;
    }
  }

  private async guarded(input: unknown, context: ToolContext): Promise<unknown> {
    const passage = this.passageOf(context);
    try {
      await this.guards?.(input, context);
    } catch (error) {
      passage.refusedBy = 'guard';
      passage.refusal = error;
      throw error;
    }
    return this.interceptors(input, context);
  }

  private async enter(passage: Passage): Promise<unknown> {
    const args = await this.pipedArguments(passage);
    return this.execute(args, passage.context, await this.entered(passage));
  }

  private async pipedArguments(passage: Passage): Promise<unknown[]> {
    if (!this.pipes) return [passage.input];
    try {
      return await this.pipes(passage.input, passage.context);
    } catch (error) {
      passage.refusedBy = 'pipe';
      passage.refusal = error;
      throw error;
    }
  }

  /** I1: nothing of the method runs before its intent is known to be committed. */
  private async entered(passage: Passage): Promise<EnteredContext | void> {
    if (passage.over) {
      throw new Error(
        `An interceptor entered ${placeOf(this.host)} after its call had ended. Nobody would record what it does.`,
      );
    }
    if (passage.entering !== null && !this.mayReenter) {
      throw new Error(
        `An interceptor entered ${placeOf(this.host)} twice within one call. Only tools with recovery 'safe' or 'idempotent' may be repeated.`,
      );
    }
    try {
      passage.context.signal.throwIfAborted();
      passage.entering ??= passage.entry.onEnter();
      const added = await passage.entering;
      passage.entered = true;
      return added;
    } catch (error) {
      passage.entryFailure = { error };
      throw error;
    }
  }

  private passageOf(context: ToolContext): Passage {
    const passage = this.passages.get(context);
    if (!passage) throw new Error(`An enhancer of ${placeOf(this.host)} replaced the ToolContext among its arguments.`);
    return passage;
  }

  private layer(
    creator: ExternalContextCreator,
    kind: 'guards' | 'interceptors' | 'filters' | 'pipes',
    enhancers: Record<string, unknown[]>,
    body: (...args: never[]) => Promise<unknown>,
  ): Layer {
    const handler = handlerLike(methodOf(this.host), enhancers, body);
    return creator.create(
      this.host.instance,
      handler as (...args: unknown[]) => unknown,
      this.host.methodName,
      kind === 'pipes' ? TOOL_ARGUMENTS_METADATA : undefined,
      kind === 'pipes' ? (TOOL_PARAMETERS_FACTORY as never) : undefined,
      undefined,
      undefined,
      { guards: kind === 'guards', interceptors: kind === 'interceptors', filters: kind === 'filters' },
      'agent',
    ) as Layer;
  }
}

/** What `ExecutionContext.getHandler()` gives: named like the method and with all its metadata, so that a Reflector finds everything. */
function handlerLike(
  method: (...args: never[]) => unknown,
  enhancers: Record<string, unknown[]>,
  body: (...args: never[]) => Promise<unknown>,
): (...args: never[]) => Promise<unknown> {
  const handler = (...args: never[]): Promise<unknown> => body(...args);
  Object.defineProperty(handler, 'name', { value: method.name });
  for (const key of Reflect.getMetadataKeys(method) as unknown[]) {
    Reflect.defineMetadata(key, Reflect.getMetadata(key, method), handler);
  }
  for (const key of [GUARDS_METADATA, INTERCEPTORS_METADATA, PIPES_METADATA, EXCEPTION_FILTERS_METADATA]) {
    Reflect.defineMetadata(key, enhancers[key] ?? [], handler);
  }
  return handler;
}

/** Last among the filters of class and method: Nest's own fallback would log the error with all that hangs on it. */
@Catch()
class RethrowFilter implements ExceptionFilter {
  catch(exception: unknown): never {
    throw exception;
  }
}
const rethrow = new RethrowFilter();

/** The method's context, with what entering it added or replaced; getters and methods of the original stay what they are. */
function contextWith(context: ToolContext, added: EnteredContext): ToolContext {
  return Object.freeze(
    Object.create(Object.getPrototypeOf(context) as object, {
      ...Object.getOwnPropertyDescriptors(context),
      ...Object.getOwnPropertyDescriptors(added),
    }),
  ) as ToolContext;
}

/** The last value of an Observable; undefined where there is none. */
function settled(value: unknown): unknown {
  return isObservable(value) ? lastValueFrom(value, { defaultValue: undefined }) : value;
}

function denied(cause: unknown): ToolDeniedError {
  return new ToolDeniedError(refusalText(cause, 'A guard refused this call.'), { cause });
}

function invalidArguments(cause: unknown): InvalidToolArgumentsError {
  return new InvalidToolArgumentsError(refusalText(cause, 'A pipe refused the arguments.'), { cause });
}

/**
 * What the model is told of a refusal: the text of an HttpException, which was written for callers; anything else (a database error inside a guard) is kept
 * as the cause only.
 */
export function refusalText(error: unknown, fallback: string): string {
  try {
    const response: unknown = (error as { getResponse?: () => unknown } | null | undefined)?.getResponse?.();
    const message: unknown =
      typeof response === 'object' && response !== null ? (response as { message?: unknown }).message : response;
    if (Array.isArray(message)) return message.map(String).join('; ');
    return typeof message === 'string' && message !== '' ? message : fallback;
  } catch {
    return fallback;
  }
}
