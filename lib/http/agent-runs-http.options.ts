import type { CanActivate, ControllerOptions, ModuleMetadata, Type } from '@nestjs/common';
import { InvalidConfigurationError } from '../errors/configuration.errors.js';
import type { ActorResolver, ActorResolverFunction, HttpRequestLike } from './access/actor-resolver.port.js';
import type { RunAuthorizer, RunAuthorizerFunction } from './access/run-authorizer.port.js';

// Tokens of one registration, private to its module.
export const ACTOR_RESOLVER = Symbol.for('nestjs-agent-runs:http-actor-resolver');
export const RUN_AUTHORIZER = Symbol.for('nestjs-agent-runs:http-run-authorizer');
export const HTTP_FEATURES = Symbol.for('nestjs-agent-runs:http-features');
export const HTTP_PATH = Symbol.for('nestjs-agent-runs:http-path');
export const HTTP_DOCUMENTATION = Symbol.for('nestjs-agent-runs:http-documentation');

/** Verbs that are off unless asked for. */
export interface AgentRunsHttpFeatures {
  /** `resume` with `allowRunningTakeover: true`. Default false. */
  takeover?: boolean;
}

/** A security scheme of the host's OpenAPI document by its name, or a Security Requirement Object: schemes that are needed together, with their scopes. */
export type SecurityRequirement = string | Record<string, string[]>;

/**
 * All of it is structure and fixed at registration.
 * @typeParam Request what `actorResolver` takes, inferred by `register`
 */
export interface AgentRunsHttpOptions<Request extends object = HttpRequestLike> {
  /** Where the routes hang, under the host's global prefix and version. Default `agents`. */
  path?: string;
  /** The host's guards, classes or instances, run in this order before anything else. Classes are made in this module: import what they need. */
  guards?: (Type<CanActivate> | CanActivate)[];
  /** Modules that provide what the guards, the resolver and the authorizer inject. */
  imports?: ModuleMetadata['imports'];
  /** As for `@Controller({ version })`. Default: the host's default version. */
  version?: ControllerOptions['version'];
  /** Who makes a request: a class (made in this module), the string or symbol of an imported provider, or a function. */
  actorResolver: Type<ActorResolver<Request>> | string | symbol | ActorResolverFunction<Request>;
  /** Who may do what: a class, the string or symbol of an imported provider, or a function. Default: everybody who passes the guards. */
  authorize?: Type<RunAuthorizer> | string | symbol | RunAuthorizerFunction;
  features?: AgentRunsHttpFeatures;
  /**
   * What the OpenAPI document says of the guards: any one of these lets a client in, such as `['bearer']` or `[{ oauth2: ['runs'] }]`. Documents only.
   * Default: the routes claim nothing.
   */
  security?: SecurityRequirement[];
  /** Says that the routes need no guards of their own, e.g. because `APP_GUARD` covers them. Default false: no guards is a boot error. */
  allowUnguarded?: boolean;
}

const OPTION_NAMES = new Set<string>([
  'path',
  'guards',
  'imports',
  'version',
  'actorResolver',
  'authorize',
  'features',
  'security',
  'allowUnguarded',
]);

/** @throws InvalidConfigurationError listing every problem */
export function checkHttpOptions<Request extends object>(options: AgentRunsHttpOptions<Request>): void {
  const problems: string[] = [];
  const report = (problem: string) => problems.push(`AgentRunsHttpModule.register: ${problem}`);
  if (typeof options !== 'object' || options === null) {
    throw new InvalidConfigurationError(['AgentRunsHttpModule.register: an options object is needed.']);
  }
  for (const name of Object.keys(options)) if (!OPTION_NAMES.has(name)) report(`there is no option "${name}".`);
  const { path, guards, actorResolver, authorize, features, security, allowUnguarded } = options;
  if (path !== undefined && (typeof path !== 'string' || !/^\/?[^\s/?#*]+(\/[^\s/?#*]+)*\/?$/.test(path))) {
    report(`path is ${JSON.stringify(path)}. Give segments like 'agents' or 'api/agents'.`);
  }
  if (guards !== undefined && (!Array.isArray(guards) || guards.some((guard) => guard == null))) {
    report('guards holds something that is no guard. Is one of them imported in a circle?');
  } else if (!guards?.length && allowUnguarded !== true) {
    report('no guards. Give guards: [YourAuthGuard], or allowUnguarded: true if a global guard covers these routes.');
  }
  if (!isProviderLike(actorResolver)) {
    report(
      'actorResolver is missing. Give a class with resolve(request), the token of one, or a function, so that it is known who makes a request.',
    );
  }
  if (authorize !== undefined && !isProviderLike(authorize)) {
    report(
      'authorize is neither a class with authorize(actor, action, resource), nor the token of one, nor a function.',
    );
  }
  for (const [name, value] of Object.entries(features ?? {})) {
    if (name !== 'takeover') report(`there is no feature "${name}".`);
    else if (typeof value !== 'boolean') report('features.takeover is neither true nor false.');
  }
  if (security !== undefined && !(Array.isArray(security) && security.every(isSecurityRequirement))) {
    report("security is no list of scheme names and requirements. Give one like ['bearer'] or [{ oauth2: ['runs'] }].");
  }
  if (problems.length > 0) throw new InvalidConfigurationError(problems);
}

const isProviderLike = (value: unknown) => ['function', 'string', 'symbol'].includes(typeof value) && value !== '';

const isName = (value: unknown) => typeof value === 'string' && value !== '';

function isSecurityRequirement(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return isName(value);
  return Object.values(value).every((scopes) => Array.isArray(scopes) && scopes.every(isName));
}
