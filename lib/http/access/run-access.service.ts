import { Inject, Injectable, Logger } from '@nestjs/common';
import type { Actor, RunRecord } from '../../contracts/run.js';
import type { Interaction } from '../../contracts/interaction.js';
import type { RunStore } from '../../contracts/ports/run-store.port.js';
import type {
  ListOptions,
  PendingInteractionsOptions,
  SessionMessagesOptions,
  StartOptions,
} from '../../contracts/run-requests.js';
import type { Run } from '../../contracts/run-view.js';
import { AGENT_RUNS_STORE } from '../../decorators/inject-run-store.decorator.js';
import { AgentRunsError } from '../../errors/agent-runs.error.js';
import { RequestConflictError, RunExistsError, RunNotFoundError } from '../../errors/request.errors.js';
import type { AgentRunsHttpFeatures } from '../agent-runs-http.options.js';
import { HTTP_FEATURES, RUN_AUTHORIZER } from '../agent-runs-http.options.js';
import type { HttpProblem } from '../results/http-problem.js';
import { httpProblem } from '../results/http-problem.js';
import {
  type RunAction,
  type RunAuthorizer,
  type RunFacts,
  type RunResource,
  type RunScope,
  isWithinScope,
  readScope,
} from './run-authorizer.port.js';

/** Asks of a run that are looked through at a time. */
const PAGE = 100;

/** What lists can be narrowed by. */
type Filter = Pick<ListOptions & PendingInteractionsOptions, 'sessionId' | 'agent' | 'metadata'>;

/**
 * Asks the host's authorizer, and nothing else decides. What an actor may not see looks exactly like what does not
 * exist (404); what may be seen but not done is 403. Without an authorizer no read is spent on it.
 */
@Injectable()
export class RunAccess {
  private readonly logger = new Logger(RunAccess.name);

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

  /**
   * An ask that is not there, and the role that it is for, are left to the verb.
   * @throws RunNotFoundError, HttpProblem 403
   */
  async decide(actor: Actor, runId: string, interactionId: string): Promise<void> {
    if (!this.authorizer) return;
    await this.run(actor, 'decide', runId, await this.findInteraction(runId, interactionId));
  }

  /**
   * Starts what the actor may start. A session is judged by what is stored of it, and the start is bound to that
   * verdict by the session's owner: whoever opens the session in between is seen by the start's own transaction, and
   * the new session is judged then.
   * @param begin starts the request as it is allowed
   * @throws HttpProblem 403, and whatever the start throws
   */
  async start(actor: Actor, request: StartOptions, begin: (allowed: StartOptions) => Promise<Run>): Promise<Run> {
    if (!this.authorizer) return begin(request);
    const allowed = await this.allowedStart(actor, request);
    const run = await begin(allowed)
      .catch(async (error: unknown) => {
        if (!AgentRunsError.is(error, 'FORBIDDEN')) throw error;
        return begin(await this.allowedStart(actor, request));
      })
      .catch((error: unknown) => this.refusedStart(actor, error));
    if (run.deduplicated && !(await this.mayRead(actor, run.id))) throw usedBefore();
    return run;
  }

  /** @returns the request, stamped with the scope and bound to the session as it was judged */
  private async allowedStart(actor: Actor, request: StartOptions): Promise<StartOptions> {
    const { sessionId } = request;
    const session = sessionId === undefined ? null : await this.sessionFacts(sessionId);
    const resource = { request, run: session?.run ?? null, ...(sessionId !== undefined && { sessionId }) };
    const scope = await this.ask(actor, 'start', resource);
    const isInside =
      scope !== null &&
      (scope.agent === undefined || scope.agent === request.agent) &&
      isSessionWithinScope(sessionId, session, { ...scope, agent: undefined });
    if (!isInside) throw forbidden('start');
    return {
      ...request,
      ...(scope.metadata && { metadata: { ...request.metadata, ...scope.metadata } }),
      ...(sessionId !== undefined && ownerJudged(actor, session, scope)),
    };
  }

  /**
   * A start may be refused because of an earlier run: without the actor's right to read that run, nothing tells which
   * it is, or how it stands.
   */
  private async refusedStart(actor: Actor, error: unknown): Promise<never> {
    if (!AgentRunsError.is(error)) throw error;
    if (error.code === 'FORBIDDEN') throw forbidden('start');
    const other = error.code === 'REQUEST_CONFLICT' || error.code === 'RUN_EXISTS' ? error.details['runId'] : undefined;
    if (typeof other !== 'string' || (await this.mayRead(actor, other))) throw error;
    throw error.code === 'RUN_EXISTS' ? new RunExistsError(`Run id ${other} is taken. Use another one.`) : usedBefore();
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

  /**
   * Reads what the actor may read of a session; bound to the verdict as a start is.
   * @param read is given what `RunService` compares
   * @throws HttpProblem 403
   */
  async session<T>(actor: Actor, sessionId: string, read: (owner: SessionMessagesOptions) => Promise<T>): Promise<T> {
    if (!this.authorizer) return read({});
    const session = await this.sessionFacts(sessionId);
    const scope = await this.ask(actor, 'read_session', { run: session?.run ?? null, sessionId });
    if (!scope || !isSessionWithinScope(sessionId, session, scope)) throw forbidden('read_session');
    return read(ownerJudged(actor, session, scope)).catch((error: unknown) => {
      throw AgentRunsError.is(error, 'FORBIDDEN') ? forbidden('read_session') : error;
    });
  }

  private async ask(actor: Actor, action: RunAction, resource: RunResource): Promise<RunScope | null> {
    if (!this.authorizer) return {};
    const answer: unknown = await this.authorizer.authorize(actor, action, resource);
    if (answer === true) return {};
    if (answer === false) return null;
    const scope = readScope(answer);
    if (!scope)
      this.logger.error(`authorize answered neither true, false nor a scope for "${action}"; it is not allowed.`);
    return scope;
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

  private async sessionFacts(sessionId: string): Promise<SessionFacts | null> {
    const session = await this.store.session(sessionId);
    if (!session) return null;
    const { items } = await this.store.list({ sessionId, limit: 1 });
    return { owner: session.owner, run: items[0] ? await this.load(items[0].id) : null };
  }
}

/** A session as it is stored: its owner, which never changes, and its latest run. */
interface SessionFacts {
  owner: string | null;
  run: RunFacts | null;
}

function isSessionWithinScope(sessionId: string | undefined, session: SessionFacts | null, scope: RunScope): boolean {
  return (
    (scope.sessionId === undefined || scope.sessionId === sessionId) &&
    (scope.sessionOwner === undefined || session === null || scope.sessionOwner === session.owner) &&
    (!session?.run || isWithinScope(session.run, scope))
  );
}

/**
 * The owner that the session must have for the verdict to hold: a new one becomes the actor's, one without an owner
 * cannot be mistaken for a new one.
 */
function ownerJudged(actor: Actor, session: SessionFacts | null, scope: RunScope): SessionMessagesOptions {
  if (!session) return { sessionOwner: scope.sessionOwner ?? actor.id };
  return session.owner === null ? {} : { sessionOwner: session.owner };
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
