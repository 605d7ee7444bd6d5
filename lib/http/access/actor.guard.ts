import { type CanActivate, type ExecutionContext, Inject, Injectable, Logger } from '@nestjs/common';
import { ACTOR_RESOLVER } from '../agent-runs-http.tokens.js';
import { httpProblem, internalProblem } from '../answer/http-problem.mapper.js';
import type { ActorResolver, HttpRequestLike } from './actor-resolver.port.js';
import { rememberActor } from './current-actor.decorator.js';

/** Runs after the host's guards: no route is entered without knowing who asks. */
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
    if (typeof id !== 'string' || id.trim() === '' || (actor?.roles !== undefined && !Array.isArray(actor.roles))) {
      this.logger.error('The actorResolver gave an actor whose id is no text, or whose roles are no list.');
      throw internalProblem();
    }
    rememberActor(request, { id, ...(actor?.roles ? { roles: actor.roles.map(String) } : {}) });
    return true;
  }
}
