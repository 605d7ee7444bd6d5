/**
 * Asks the host's authorizer, and nothing else decides. What an actor may not see looks exactly like what does not exist (404); what may be seen but not
 * done is 403. Without an authorizer no read is spent on it.
 */
import { Inject, Injectable } from '@nestjs/common';
import type { Actor } from '../../contracts/actor.js';
import type { Interaction } from '../../contracts/interaction.js';
import type { RunStore } from '../../contracts/ports/run-store.port.js';
import type { RunRecord } from '../../contracts/run.js';
import type { ListOptions, PendingInteractionsOptions, StartOptions } from '../../contracts/run-requests.js';
import type { Run } from '../../contracts/run-view.js';
import { AGENT_RUNS_STORE } from '../../decorators/agent-runs-store.tokens.js';
import { AgentRunsError } from '../../errors/agent-runs.error.js';
import { RequestConflictError } from '../../errors/request/request-conflict.error.js';
import { RunNotFoundError } from '../../errors/request/run-not-found.error.js';
import type { AgentRunsHttpFeatures } from '../agent-runs-http.options.js';
import { HTTP_FEATURES, RUN_AUTHORIZER } from '../agent-runs-http.tokens.js';
import type { HttpProblem } from '../answer/http-problem.error.js';
import { httpProblem } from '../answer/http-problem.mapper.js';
import {
  type RunAction,
  type RunAuthorizer,
  type RunFacts,
  type RunResource,
  type RunScope,
  isWithinScope,
} from './run-authorizer.port.js';

/** Asks of a run that are looked through at a time. */
const PAGE = 100;

/** What lists can be narrowed by. */
type Filter = Pick<ListOptions & PendingInteractionsOptions, 'sessionId' | 'agent' | 'metadata'>;

@Injectable()
export class RunAccess {
  constructor(
    @Inject(RUN_AUTHORIZER) private readonly authorizer: RunAuthorizer | null,
    @Inject(HTTP_FEATURES) private readonly features: AgentRunsHttpFeatures,
    @Inject(AGENT_RUNS_STORE) private readonly store: RunStore,
  ) {}

  async definitions(actor: Actor): Promise<void> {
    if (!(await this.ask(actor, 'definitions', {}))) throw forbidden('definitions');
  }

  /** @throws RunNotFoundError, HttpProblem 403 */
  async run(actor: Actor, action: RunAction, runId: string, interaction?: Interaction): Promise<void> {
    if (!this.authorizer) return;
    const run = await this.load(runId);
    if (run && (await this.allows(actor, action, { run, ...(interaction && { interaction }) }, run))) return;
    if (run && action !== 'read' && (await this.allows(actor, 'read', { run }, run))) throw forbidden(action);
    throw new RunNotFoundError(`No run has the id ${runId}.`);
  }

  /** On top of `resume`. */
  async takeover(actor: Actor, runId: string): Promise<void> {
    if (!this.features.takeover) {
      throw httpProblem(403, 'FORBIDDEN', 'Taking a run from a live owner is switched off here.');
    }
    await this.run(actor, 'takeover', runId);
  }

  /** An ask that is not there, and the role that it is for, are left to the verb. @throws RunNotFoundError, HttpProblem 403 */
  async decide(actor: Actor, runId: string, interactionId: string): Promise<void> {
    if (!this.authorizer) return;
    await this.run(actor, 'decide', runId, await this.findInteraction(runId, interactionId));
  }

  /** @returns the request as it may be started. @throws HttpProblem 403 */
  async start(actor: Actor, request: StartOptions): Promise<StartOptions> {
    if (!this.authorizer) return request;
    const { sessionId } = request;
    const run = sessionId === undefined ? null : await this.latestOf(sessionId);
    const scope = await this.ask(actor, 'start', { request, run, ...(sessionId === undefined ? {} : { sessionId }) });
    const isOutside =
      !scope ||
      (scope.sessionId !== undefined && scope.sessionId !== sessionId) ||
      (scope.agent !== undefined && scope.agent !== request.agent) ||
      (run !== null && !isWithinScope(run, { ...scope, agent: undefined }));
    if (isOutside) throw forbidden('start');
    return scope.metadata ? { ...request, metadata: { ...request.metadata, ...scope.metadata } } : request;
  }

  /**
   * A start may be answered with an earlier run, or refused because of one: without the actor's right to read that run, neither tells which it is.
   * @throws RequestConflictError, and whatever the start throws
   */
  async started(actor: Actor, start: () => Promise<Run>): Promise<Run> {
    try {
      const run = await start();
      if (run.deduplicated && !(await this.mayRead(actor, run.id))) throw usedBefore();
      return run;
    } catch (error) {
      const other = AgentRunsError.is(error, 'REQUEST_CONFLICT') ? error.details['runId'] : undefined;
      if (typeof other === 'string' && !(await this.mayRead(actor, other))) throw usedBefore();
      throw error;
    }
  }

  private async mayRead(actor: Actor, runId: string): Promise<boolean> {
    if (!this.authorizer) return true;
    const run = await this.load(runId);
    return run !== null && (await this.allows(actor, 'read', { run }, run));
  }

  /** @returns the filter to list with; null when nothing lies within both it and the scope. @throws HttpProblem 403 */
  async list(actor: Actor, query: ListOptions): Promise<ListOptions | null> {
    const scope = await this.ask(actor, 'list', { query });
    if (!scope) throw forbidden('list');
    return narrow(query, scope);
  }

  /** As {@link list}, for asks: what a run asks lies within a scope when the run does. */
  async interactions(actor: Actor, query: PendingInteractionsOptions): Promise<PendingInteractionsOptions | null> {
    const scope = await this.ask(actor, 'list_interactions', { interactionQuery: query });
    if (!scope) throw forbidden('list_interactions');
    return narrow(query, scope);
  }

  /** @throws HttpProblem 403 */
  async session(actor: Actor, sessionId: string): Promise<void> {
    if (!this.authorizer) return;
    const run = await this.latestOf(sessionId);
    const scope = await this.ask(actor, 'read_session', { run, sessionId });
    const isInside = scope && (scope.sessionId === undefined || scope.sessionId === sessionId);
    if (!isInside || (run && !isWithinScope(run, scope))) throw forbidden('read_session');
  }

  private async ask(actor: Actor, action: RunAction, resource: RunResource): Promise<RunScope | null> {
    if (!this.authorizer) return {};
    const answer: unknown = await this.authorizer.authorize(actor, action, resource);
    if (answer === true) return {};
    // Anything but a clear yes is a no: a forgotten return must not open a door.
    return typeof answer === 'object' && answer !== null ? answer : null;
  }

  private async allows(actor: Actor, action: RunAction, resource: RunResource, run: RunFacts): Promise<boolean> {
    const scope = await this.ask(actor, action, resource);
    return scope !== null && isWithinScope(run, scope);
  }

  private async load(runId: string): Promise<RunFacts | null> {
    const stored = await this.store.load(runId);
    return stored && factsOf(stored.run);
  }

  private async findInteraction(runId: string, interactionId: string): Promise<Interaction | undefined> {
    for (let cursor: string | undefined; ;) {
      const query = { runId, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) };
      const { items, nextCursor } = await this.store.interactions(query);
      const found = items.find(({ id }) => id === interactionId);
      if (found || nextCursor === undefined) return found;
      cursor = nextCursor;
    }
  }

  private async latestOf(sessionId: string): Promise<RunFacts | null> {
    const { items } = await this.store.list({ sessionId, limit: 1 });
    return items[0] ? this.load(items[0].id) : null;
  }
}

/** @returns null when nothing lies within both the filter and the scope */
function narrow<T extends Filter>(query: T, scope: RunScope): T | null {
  const narrowed: Filter = {};
  for (const field of ['sessionId', 'agent'] as const) {
    const wanted = scope[field];
    if (wanted === undefined) continue;
    if (query[field] !== undefined && query[field] !== wanted) return null;
    narrowed[field] = wanted;
  }
  for (const [key, value] of Object.entries(scope.metadata ?? {})) {
    const asked = query.metadata && Object.hasOwn(query.metadata, key) ? query.metadata[key] : undefined;
    if (asked !== undefined && String(asked) !== String(value)) return null;
    narrowed.metadata = { ...query.metadata, ...narrowed.metadata, [key]: value };
  }
  return { ...query, ...narrowed };
}

function factsOf(run: RunRecord): RunFacts {
  const { id, agent, version, status, sessionId, actor, metadata } = run;
  return { runId: id, agent, version, status, sessionId, owner: actor, metadata };
}

function forbidden(action: RunAction): HttpProblem {
  return httpProblem(403, 'FORBIDDEN', `You may not do this: ${action}.`);
}

function usedBefore(): RequestConflictError {
  return new RequestConflictError('This request id was used before for another request. Use a new one.');
}
