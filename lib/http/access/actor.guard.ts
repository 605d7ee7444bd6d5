import { type CanActivate, type ExecutionContext, Inject, Injectable, Logger } from '@nestjs/common';
import type { Actor } from '../../contracts/run.js';
import { isBlankText } from '../../contracts/text.js';
import { ACTOR_RESOLVER } from '../agent-runs-http.options.js';
import { httpProblem, internalProblem } from '../results/http-problem.js';
import type { ActorResolver, HttpRequestLike } from './actor-resolver.port.js';

const ACTOR = Symbol.for('nestjs-agent-runs:http-actor');

type WithActor = Record<symbol, Actor | undefined>;

/** The actor of a request that passed the guard. */
export function actorOf(request: HttpRequestLike): Actor {
  const actor = (request as unknown as WithActor)[ACTOR];
  if (!actor) throw new TypeError('No actor was resolved for this request: the actor guard did not run.');
  return actor;
}

/** Runs after the host's guards: no route is entered without an actor. */
@Injectable()
export class ActorGuard implements CanActivate {
  private readonly logger = new Logger(ActorGuard.name);

  constructor(@Inject(ACTOR_RESOLVER) private readonly resolver: ActorResolver) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<HttpRequestLike>();
    const actor = await this.resolver.resolve(request);
    const id: unknown = actor?.id;
    if (id === undefined || id === null || id === '') {
      throw httpProblem(401, 'UNAUTHENTICATED', 'It is not known who makes this request.');
    }
    if (typeof id !== 'string' || isBlankText(id) || (actor?.roles !== undefined && !Array.isArray(actor.roles))) {
      this.logger.error('The actorResolver gave an actor whose id is no text, or whose roles are no list.');
      throw internalProblem();
    }
    (request as unknown as WithActor)[ACTOR] = { id, ...(actor?.roles ? { roles: actor.roles.map(String) } : {}) };
    return true;
  }
}
