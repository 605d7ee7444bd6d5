// Checked by `npm run typecheck`: what the routes take as the host's resolver and authorizer, with the request type of each adapter.
import { type CanActivate, Injectable } from '@nestjs/common';
import type { Request as ExpressRequest } from 'express';
import type { FastifyRequest } from 'fastify';
import type { Actor } from 'nestjs-agent-runs';
import {
  type ActorResolver,
  AgentRunsHttpModule,
  type AgentRunsHttpOptions,
  type HttpRequestLike,
  type RunAction,
  type RunAuthorizer,
  type RunResource,
  type RunScope,
} from 'nestjs-agent-runs/http';
import { exactly } from './equal.js';

declare const guard: CanActivate;
const guards = [guard];
interface User {
  id: string;
  roles: string[];
  email: string;
}
interface AuthenticatedExpress extends ExpressRequest {
  user: User;
}
interface AuthenticatedFastify extends FastifyRequest<{ Params: { id: string } }> {
  user: User;
}

// A function.
AgentRunsHttpModule.register({ guards, actorResolver: (request: ExpressRequest) => ({ id: request.ip ?? '' }) });
AgentRunsHttpModule.register({ guards, actorResolver: (request: FastifyRequest) => ({ id: request.ip }) });
AgentRunsHttpModule.register({ guards, actorResolver: (request: AuthenticatedExpress) => request.user });
AgentRunsHttpModule.register({ guards, actorResolver: async (request: AuthenticatedFastify) => request.user });
AgentRunsHttpModule.register({ guards, actorResolver: (request: { user?: User }) => request.user });
AgentRunsHttpModule.register({ guards, actorResolver: () => ({ id: 'robot' }) });
AgentRunsHttpModule.register({
  guards,
  actorResolver: (request) => {
    exactly<HttpRequestLike>()(request, true);
    return request['user'] as Actor;
  },
});

// A class, with and without `implements`.
@Injectable()
class ExpressResolver implements ActorResolver {
  resolve(request: AuthenticatedExpress) {
    return request.user;
  }
}
class FastifyResolver implements ActorResolver<FastifyRequest> {
  async resolve(request: FastifyRequest) {
    return { id: String(request.headers['x-user']) };
  }
}
class StructuralResolver implements ActorResolver {
  resolve({ user }: { user?: User }) {
    return user ?? null;
  }
}
class PlainResolver {
  resolve(request: AuthenticatedFastify) {
    return request.user;
  }
}
AgentRunsHttpModule.register({ guards, actorResolver: ExpressResolver });
AgentRunsHttpModule.register({ guards, actorResolver: StructuralResolver });
AgentRunsHttpModule.register({ guards, actorResolver: FastifyResolver });
AgentRunsHttpModule.register({ guards, actorResolver: PlainResolver });

// A token.
AgentRunsHttpModule.register({ guards, actorResolver: 'RESOLVER' });
AgentRunsHttpModule.register({ guards, actorResolver: Symbol('resolver') });

// Options that are kept apart name their request.
export const kept: AgentRunsHttpOptions<ExpressRequest> = {
  guards,
  actorResolver: (request) => ({ id: request.path }),
};
AgentRunsHttpModule.register(kept);

// An authorizer judges by actor and run, whatever the adapter is.
class Owners implements RunAuthorizer {
  async authorize(actor: Actor, _action: RunAction, { run }: RunResource): Promise<boolean | RunScope> {
    return run ? run.owner?.id === actor.id : { sessionOwner: actor.id };
  }
}
class Readers {
  authorize(_actor: Actor, action: RunAction) {
    return action === 'read';
  }
}
for (const authorize of [Owners, Readers]) {
  AgentRunsHttpModule.register({
    guards,
    actorResolver: (request: ExpressRequest) => ({ id: request.path }),
    authorize,
  });
}
AgentRunsHttpModule.register({
  guards,
  actorResolver: (request: FastifyRequest) => ({ id: request.id }),
  authorize: (actor, action, { run }) => action === 'list' && run?.owner?.id === actor.id,
});

// @ts-expect-error -- an actor has an id, which is text
AgentRunsHttpModule.register({ guards, actorResolver: ({ socket }: ExpressRequest) => ({ id: socket.remotePort }) });
// @ts-expect-error -- a class without resolve
AgentRunsHttpModule.register({ guards, actorResolver: Owners });
// @ts-expect-error -- a scope has no tenant
AgentRunsHttpModule.register({ guards, actorResolver: () => null, authorize: () => ({ tenant: 'acme' }) });
// @ts-expect-error -- `approve` is no action
AgentRunsHttpModule.register({ guards, actorResolver: () => null, authorize: (_, action) => action === 'approve' });
