import { isRecord } from '../contracts/json.js';
import type { CanActivate, ControllerOptions, ModuleMetadata, Type } from '@nestjs/common';
import { readOptions } from '../contracts/read-options.js';
import type { Duration } from '../contracts/duration.js';
import { anything, duration, type Field, type FieldsOf, field, flag, object } from '../contracts/schema.js';
import { InvalidConfigurationError } from '../errors/configuration.errors.js';
import type { ActorResolver, ActorResolverFunction, HttpRequestLike } from './access/actor-resolver.port.js';
import type { RunAuthorizer, RunAuthorizerFunction } from './access/run-authorizer.port.js';

// Tokens of one registration, private to its module.
export const ACTOR_RESOLVER = Symbol.for('nestjs-agent-runs:http-actor-resolver');
export const RUN_AUTHORIZER = Symbol.for('nestjs-agent-runs:http-run-authorizer');
export const HTTP_FEATURES = Symbol.for('nestjs-agent-runs:http-features');
export const HTTP_PATH = Symbol.for('nestjs-agent-runs:http-path');
export const HTTP_STREAM_MAX_AGE = Symbol.for('nestjs-agent-runs:http-stream-max-age');
export const HTTP_DOCUMENTATION = Symbol.for('nestjs-agent-runs:http-documentation');

/** Verbs that are off unless asked for. */
export interface AgentRunsHttpFeatures {
  /** `resume` with `allowRunningTakeover: true`. Default false. */
  takeover?: boolean;
}

/**
 * A security scheme of the host's OpenAPI document by its name, or a Security Requirement Object: schemes that are
 * needed together, with their scopes.
 */
export type SecurityRequirement = string | Record<string, string[]>;

/**
 * All of it is structure and fixed at registration.
 * @typeParam Request what `actorResolver` takes, inferred by `register`
 */
export interface AgentRunsHttpOptions<Request extends object = HttpRequestLike> {
  /** Where the routes hang, under the host's global prefix and version. Default `agents`. */
  path?: string;
  /**
   * The host's guards, classes or instances, run in this order before anything else. Classes are made in this module:
   * import what they need.
   */
  guards?: (Type<CanActivate> | CanActivate)[];
  /** Modules that provide what the guards, the resolver and the authorizer inject. */
  imports?: ModuleMetadata['imports'];
  /** As for `@Controller({ version })`. Default: the host's default version. */
  version?: ControllerOptions['version'];
  /**
   * Who makes a request: a class (made in this module), the string or symbol of an imported provider, or a function.
   */
  actorResolver: Type<ActorResolver<Request>> | string | symbol | ActorResolverFunction<Request>;
  /**
   * Who may do what: a class, the string or symbol of an imported provider, or a function. Default: everybody who
   * passes the guards.
   */
  authorize?: Type<RunAuthorizer> | string | symbol | RunAuthorizerFunction;
  /** Verbs that are off unless asked for. Default: none of them. */
  features?: AgentRunsHttpFeatures;
  /**
   * How long a connection may stream. It is then cut, and the client connects again with its cursor and is authorised
   * again. Default `1h`.
   */
  streamMaxAge?: Duration;
  /**
   * What the OpenAPI document says of the guards: any one of these lets a client in, such as `['bearer']` or `[{
   * oauth2: ['runs'] }]`. Documents only. Default: the routes claim nothing.
   */
  security?: SecurityRequirement[];
  /**
   * Says that the routes need no guards of their own, e.g. because `APP_GUARD` covers them. Default false: no guards is
   * a boot error.
   */
  allowUnguarded?: boolean;
}

const isName = (value: unknown): boolean => typeof value === 'string' && value !== '';
const isProvider = (value: unknown): boolean => ['function', 'symbol'].includes(typeof value) || isName(value);

function isSecurityRequirement(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return isName(value);
  return Object.values(value).every((scopes) => Array.isArray(scopes) && scopes.every(isName));
}

const OPTIONS = object({
  path: field<string>(
    "segments like 'agents' or 'api/agents'",
    (value) => typeof value === 'string' && /^\/?[^\s/?#*]+(\/[^\s/?#*]+)*\/?$/.test(value),
  ),
  guards: field(
    'a list of guards. Is one of them imported in a circle?',
    (value) => Array.isArray(value) && value.every((guard) => guard !== undefined && guard !== null),
  ),
  imports: anything(),
  version: anything(),
  actorResolver: anything(),
  authorize: field('a class with authorize(actor, action, resource), the token of one, or a function', isProvider),
  streamMaxAge: duration,
  features: object({ takeover: flag() } satisfies FieldsOf<AgentRunsHttpFeatures>),
  security: field(
    "a list of scheme names and requirements, like ['bearer'] or [{ oauth2: ['runs'] }]",
    (value) => Array.isArray(value) && value.every(isSecurityRequirement),
  ),
  allowUnguarded: flag(),
} satisfies Record<keyof AgentRunsHttpOptions, Field<unknown>>);

/** @throws InvalidConfigurationError listing every problem */
export function checkHttpOptions<Request extends object>(options: AgentRunsHttpOptions<Request>): void {
  const subject = 'AgentRunsHttpModule.register';
  const problems: string[] = [];
  const list = { add: (problem: string) => void problems.push(problem) };
  if (!isRecord(options)) throw new InvalidConfigurationError([`${subject}: an options object is needed.`]);
  readOptions(OPTIONS, options, { subject }, list);
  const { guards, actorResolver, allowUnguarded = false } = options;
  if (!guards?.length && allowUnguarded === false)
    list.add(
      `${subject}: no guards. Give guards: [YourAuthGuard], or allowUnguarded: true if a global guard covers these routes.`,
    );
  if (!isProvider(actorResolver))
    list.add(
      `${subject}: actorResolver is missing. Give a class with resolve(request), the token of one, or a function, so that it is known who makes a request.`,
    );
  if (problems.length > 0) throw new InvalidConfigurationError(problems);
}
