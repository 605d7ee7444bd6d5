import { type ExecutionContext, createParamDecorator } from '@nestjs/common';
import type { Actor } from '../../contracts/actor.js';
import type { HttpRequestLike } from './actor-resolver.port.js';

const ACTOR = Symbol.for('nestjs-agent-runs:http-actor');

/** Set once per request by the actor guard. */
export function rememberActor(request: HttpRequestLike, actor: Actor): void {
  (request as unknown as Record<symbol, Actor>)[ACTOR] = actor;
}

/** The actor of the request. */
export const CurrentActor = createParamDecorator((_data: unknown, context: ExecutionContext): Actor => {
  const request = context.switchToHttp().getRequest<Record<symbol, Actor | undefined>>();
  const actor = request[ACTOR];
  if (!actor) throw new TypeError('No actor was resolved for this request: the actor guard did not run.');
  return actor;
});
