/**
 * REST routes for runs.
 * @module nestjs-agent-runs/http
 */

export type {
  ActorResolver,
  ActorResolverFunction,
  HttpRequestLike,
  ResolvedActor,
} from './http/access/actor-resolver.port.js';
export type {
  RunAction,
  RunAuthorizer,
  RunAuthorizerFunction,
  RunFacts,
  RunResource,
  RunScope,
} from './http/access/run-authorizer.port.js';
export { AgentRunsHttpModule } from './http/agent-runs-http.module.js';
export type {
  AgentRunsHttpFeatures,
  AgentRunsHttpOptions,
  SecurityRequirement,
} from './http/agent-runs-http.options.js';
export type { HttpProblemBody, HttpProblemCode } from './http/results/http-problem.js';
export { AgentRunsExceptionFilter } from './http/results/agent-runs-exception.filter.js';
