import type { Actor } from '../../contracts/run.js';

/** What is promised of a request on every adapter, for hosts that do not name their adapter's type. */
export interface HttpRequestLike {
  /** By their names in lower case. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
  [property: string]: unknown;
}

/** Null or undefined, or an actor without an id: not logged in, answered with 401. */
export type ResolvedActor = Actor | null | undefined;

/**
 * Tells the actor of a request, as the host's authentication knows it. Runs after the registration's guards and before
 * anything else of a route: an identity never comes from a body, a query or anything else that the product itself
 * defines.
 * @typeParam Request what the host's adapter gives, such as Express' `Request`; a class that implements this may name
 * any, here or at its method
 */
export interface ActorResolver<Request extends object = object> {
  /** A throw is the host's own answer: a Nest `HttpException` is passed on as it is. */
  resolve(request: Request): ResolvedActor | Promise<ResolvedActor>;
}

/** An {@link ActorResolver} as a function. */
export type ActorResolverFunction<Request extends object = HttpRequestLike> = (
  request: Request,
) => ResolvedActor | Promise<ResolvedActor>;
