/**
 * Who makes a request, as the host's authentication knows it. Runs after the registration's guards and before anything else of a route: an identity never
 * comes from a body, a query or anything else that the product itself defines.
 */
import type { Actor } from '../../contracts/actor.js';

/** What is promised of a request on every adapter; Express' and Fastify's requests both fit. */
export interface HttpRequestLike {
  headers: Readonly<Record<string, string | string[] | undefined>>;
  [property: string]: unknown;
}

/** Null or undefined, or an actor without an id: not logged in, answered with 401. */
export type ResolvedActor = Actor | null | undefined;

export interface ActorResolver {
  /** A throw is the host's own answer: a Nest `HttpException` is passed on as it is. */
  resolve(request: HttpRequestLike): ResolvedActor | Promise<ResolvedActor>;
}

/** The same as a function. Declared as a method so that it may ask for the adapter's own request type. */
export type ActorResolverFunction = {
  resolve(request: HttpRequestLike): ResolvedActor | Promise<ResolvedActor>;
}['resolve'];
