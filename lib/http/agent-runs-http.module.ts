import {
  type CanActivate,
  Controller,
  type DynamicModule,
  Inject,
  Module,
  type NestModule,
  type Provider,
  type Type,
  UseFilters,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { parseTimerDuration } from '../contracts/duration.js';
import type { HttpRequestLike } from './access/actor-resolver.port.js';
import { ActorGuard } from './access/actor.guard.js';
import { RunAccess } from './access/run-access.service.js';
import { AgentRunsController } from './agent-runs.controller.js';
import {
  ACTOR_RESOLVER,
  type AgentRunsHttpOptions,
  checkHttpOptions,
  HTTP_DOCUMENTATION,
  HTTP_FEATURES,
  HTTP_PATH,
  HTTP_STREAM_MAX_AGE,
  RUN_AUTHORIZER,
} from './agent-runs-http.options.js';
import { documentRoutes } from './openapi/route-documentation.js';
import { answerUnreadableBodies } from './requests/unreadable-body.js';
import { AgentRunsExceptionFilter } from './results/agent-runs-exception.filter.js';
import { HttpResultInterceptor } from './results/http-result.interceptor.js';

/**
 * REST routes for runs. Secure by default: without guards the application does not boot, and every request has an
 * actor. May be registered several times under different paths. Needs `AgentRunsModule` to be global or among
 * `imports`.
 */
@Module({})
export class AgentRunsHttpModule implements NestModule {
  constructor(
    @Inject(HttpAdapterHost) private readonly adapterHost: HttpAdapterHost,
    @Inject(HTTP_PATH) private readonly path: string,
  ) {}

  /** @throws InvalidConfigurationError listing every problem of the options */
  static register<Request extends object = HttpRequestLike>(options: AgentRunsHttpOptions<Request>): DynamicModule {
    checkHttpOptions(options);
    const {
      path = 'agents',
      guards = [],
      imports = [],
      actorResolver,
      authorize,
      features = {},
      streamMaxAge = '1h',
      security = [],
    } = options;
    const controller = controllerFor(options, path, guards);
    return {
      module: AgentRunsHttpModule,
      imports,
      controllers: [controller],
      providers: [
        RunAccess,
        ActorGuard,
        HttpResultInterceptor,
        AgentRunsExceptionFilter,
        { provide: HTTP_PATH, useValue: path },
        { provide: HTTP_FEATURES, useValue: features },
        { provide: HTTP_STREAM_MAX_AGE, useValue: parseTimerDuration(streamMaxAge, 'streamMaxAge') },
        providerOf(ACTOR_RESOLVER, 'resolve', actorResolver),
        authorize === undefined
          ? { provide: RUN_AUTHORIZER, useValue: null }
          : providerOf(RUN_AUTHORIZER, 'authorize', authorize),
        // Awaited before the application is created, hence before a host makes its Swagger document.
        { provide: HTTP_DOCUMENTATION, useFactory: () => documentRoutes(controller, security) },
      ],
    };
  }

  /** Called once the adapter is there and before its error handler is set. */
  configure(): void {
    answerUnreadableBodies(this.adapterHost.httpAdapter, this.path);
  }
}

function controllerFor(
  { version }: Pick<AgentRunsHttpOptions, 'version'>,
  path: string,
  guards: (Type<CanActivate> | CanActivate)[],
): Type {
  @Controller({ path, ...(version === undefined ? {} : { version }) })
  @UseGuards(...guards, ActorGuard)
  @UseInterceptors(HttpResultInterceptor)
  @UseFilters(AgentRunsExceptionFilter)
  class RunsController extends AgentRunsController {}
  // Names the operations in the host's OpenAPI document: apart from those of its own controllers and of other registrations.
  Object.defineProperty(RunsController, 'name', { value: `AgentRuns_${path.replace(/\W+/g, '_')}` });
  return RunsController;
}

/** A class is made by Nest, a string or symbol names an imported provider, a function is used as it is. */
function providerOf(
  token: symbol,
  method: 'resolve' | 'authorize',
  given: Type<unknown> | string | symbol | ((...args: never[]) => unknown),
): Provider {
  if (typeof given === 'string' || typeof given === 'symbol') return { provide: token, useExisting: given };
  const prototype = given.prototype as Record<string, unknown> | undefined;
  return typeof prototype?.[method] === 'function'
    ? { provide: token, useClass: given as Type<unknown> }
    : { provide: token, useValue: { [method]: given } };
}
