import { Get, HttpCode, Inject, Post, Req, type StreamableFile } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Message } from '../contracts/message.js';
import type { SessionMessagesOptions, SteerReceipt, StreamOptions } from '../contracts/run-requests.js';
import type {
  AgentDescription,
  BudgetStatus,
  EventPage,
  InteractionView,
  LifecycleRunEvent,
  OperationView,
  Run,
  RunEvent,
  RunSnapshot,
  RunSummaryView,
} from '../contracts/run-view.js';
import { type Fields, type Given, invalidRequest, type ObjectField, requireId } from '../contracts/schema.js';
import { RunService } from '../engine/run-service.js';
import { AgentRunsError } from '../errors/agent-runs.error.js';
import type { InvalidRequestError } from '../errors/request.errors.js';
import { actorOf } from './access/actor.guard.js';
import type { HttpRequestLike } from './access/actor-resolver.port.js';
import { HTTP_STREAM_MAX_AGE } from './agent-runs-http.options.js';
import { RunAccess } from './access/run-access.service.js';
import type { RunAction } from './access/run-authorizer.port.js';
import * as schemas from './requests/http-schemas.js';
import { readBody, readQuery, readStartBody } from './requests/http-schemas.js';
import { clientLeft, longestPathId, requireFormat, requireJson } from './requests/request-headers.js';
import { eventStream } from './results/event-stream.js';
import { HttpResult } from './results/http-result.interceptor.js';

/** A snapshot without the content of operations, which is left to the transcript. */
export type SnapshotSummary = Omit<RunSnapshot, 'operations'> & { operations: Omit<OperationView, 'output'>[] };

/** What a route that changes a run works with. */
interface Command<F extends Fields> {
  runId: string;
  /** Id of the actor. */
  by: string;
  given: Given<F>;
}

/**
 * The routes. Thin: read the request, ask whether the actor may, call the service, choose a status. Each registration
 * gets a subclass with its path, version and guards. Routes take the request as a whole, which pipes are not given: a
 * global pipe that trims or converts would make decisions of words that are none.
 */
export abstract class AgentRunsController {
  constructor(
    @Inject(RunService) private readonly runs: RunService,
    @Inject(RunAccess) private readonly access: RunAccess,
    @Inject(HttpAdapterHost) private readonly adapterHost: HttpAdapterHost,
    @Inject(HTTP_STREAM_MAX_AGE) private readonly maxAgeMs: number,
  ) {}

  @Get('definitions')
  async definitions(@Req() request: HttpRequestLike): Promise<{ agents: AgentDescription[] }> {
    await this.access.definitions(actorOf(request));
    return { agents: this.runs.definitions() };
  }

  @Post('runs')
  @HttpCode(202)
  async start(@Req() request: HttpRequestLike): Promise<HttpResult<Run | StreamableFile>> {
    requireJson(request);
    const actor = actorOf(request);
    const { wait } = readQuery(schemas.WAIT_QUERY, request['query']);
    const format = requireFormat(request, 'json', 'events');
    if (format === 'events' && wait !== undefined) throw onlyForJson('wait');
    const options = readStartBody(request['body'], longestPathId(this.adapterHost.httpAdapter));
    const run = await this.access.start(actor, options, (allowed) => this.runs.start({ ...allowed, actor }));
    const location = { Location: this.locationOf(request, run.id) };
    if (format === 'events') return this.streamOf(run.id, {}, location);
    const headers: Record<string, string> = run.deduplicated ? {} : location;
    if (wait === undefined) return new HttpResult(run.deduplicated ? 200 : 202, run, headers);
    const waited = await this.wait(request, run, wait);
    const isAtRest = waited.phase === 'settled' || waited.phase === 'suspended';
    return new HttpResult(isAtRest ? 200 : 202, run.deduplicated ? { ...waited, deduplicated: true } : waited, headers);
  }

  @Get('runs')
  async list(@Req() request: HttpRequestLike): Promise<{ runs: RunSummaryView[]; nextCursor?: string }> {
    const options = await this.access.list(actorOf(request), readQuery(schemas.LIST_QUERY, request['query']));
    return options ? this.runs.list(options) : { runs: [] };
  }

  @Get('runs/:id')
  async get(@Req() request: HttpRequestLike): Promise<Run> {
    return this.runs.get(await this.allowed(request, 'read'));
  }

  @Get('runs/:id/snapshot')
  async snapshot(@Req() request: HttpRequestLike): Promise<SnapshotSummary> {
    const { run, operations, cursor } = await this.runs.snapshot(await this.allowed(request, 'read'));
    return { run, operations: operations.map(({ output: _content, ...rest }) => rest), cursor };
  }

  @Get('runs/:id/messages')
  async messages(@Req() request: HttpRequestLike): Promise<{ messages: Message[] }> {
    return { messages: await this.runs.messages(await this.allowed(request, 'read')) };
  }

  @Get('runs/:id/events')
  async events(
    @Req() request: HttpRequestLike,
  ): Promise<EventPage<RunEvent | LifecycleRunEvent> | HttpResult<StreamableFile>> {
    const runId = await this.allowed(request, 'read');
    // A client that connects again repeats its query; the header says how far it came.
    const last = request.headers['last-event-id'];
    const query = { ...(request['query'] as object), ...(last !== undefined && last !== '' && { after: last }) };
    const { limit, ...options } = readQuery(schemas.EVENT_QUERY, query);
    if (requireFormat(request, 'json', 'events') === 'json')
      return this.runs.events(runId, { ...options, ...(limit !== undefined && { limit }) });
    if (limit !== undefined) throw onlyForJson('limit');
    // What is wrong with the cursor is said before the stream begins.
    await this.runs.events(runId, { ...options, limit: 1 });
    return this.streamOf(runId, options);
  }

  @Get('sessions/:sessionId/messages')
  async sessionMessages(@Req() request: HttpRequestLike): Promise<{ messages: Message[] }> {
    const sessionId = pathId(request, 'sessionId');
    const read = (owner: SessionMessagesOptions) => this.runs.sessionMessages(sessionId, owner);
    return { messages: await this.access.session(actorOf(request), sessionId, read) };
  }

  @Post('runs/:id/resume')
  @HttpCode(202)
  async resume(@Req() request: HttpRequestLike): Promise<Run> {
    const { runId, by, given } = await this.command(request, 'resume', schemas.RESUME_BODY);
    const { allowRunningTakeover = false, confirmation, budget } = given;
    const { reason = confirmation?.reason } = given;
    if (allowRunningTakeover) await this.access.takeover(actorOf(request), runId);
    if (budget) await this.access.run(actorOf(request), 'budget', runId);
    return this.runs.resume(runId, {
      by,
      ...(reason !== undefined && { reason }),
      ...(budget && { budget }),
      ...(allowRunningTakeover && reason !== undefined && { allowRunningTakeover, confirmation: { by, reason } }),
    });
  }

  @Post('runs/:id/retry')
  @HttpCode(202)
  async retry(@Req() request: HttpRequestLike): Promise<Run> {
    const { runId, by, given } = await this.command(request, 'retry', schemas.RETRY_BODY);
    if (given.maxTurns !== undefined) await this.access.run(actorOf(request), 'budget', runId);
    return this.runs.retry(runId, { ...given, by });
  }

  @Post('runs/:id/cancel')
  @HttpCode(202)
  async cancel(@Req() request: HttpRequestLike): Promise<Run> {
    const { runId, by, given } = await this.command(request, 'cancel', schemas.REASON_BODY);
    return this.runs.cancel(runId, { ...given, by });
  }

  @Post('runs/:id/interrupt')
  @HttpCode(202)
  async interrupt(@Req() request: HttpRequestLike): Promise<Run> {
    const { runId, by, given } = await this.command(request, 'interrupt', schemas.REASON_BODY);
    return this.runs.interrupt(runId, { ...given, by });
  }

  @Post('runs/:id/restart')
  @HttpCode(202)
  async restart(@Req() request: HttpRequestLike): Promise<Run> {
    const { runId, by, given } = await this.command(request, 'restart', schemas.RESTART_BODY);
    if (given.maxTurns !== undefined) await this.access.run(actorOf(request), 'budget', runId);
    return this.runs.restart(runId, { ...given, by });
  }

  @Post('runs/:id/operations/resolve')
  @HttpCode(202)
  async resolve(@Req() request: HttpRequestLike): Promise<Run> {
    const { runId, by, given } = await this.command(request, 'resolve', schemas.RESOLUTION_BODY);
    return this.runs.resolveTool(runId, { ...given, by } as Parameters<RunService['resolveTool']>[1]);
  }

  @Post('runs/:id/steer')
  @HttpCode(202)
  async steer(@Req() request: HttpRequestLike): Promise<SteerReceipt> {
    const { runId, by, given } = await this.command(request, 'steer', schemas.STEER_BODY);
    const { message, ...options } = given;
    return this.runs.steer(runId, message, { ...options, sender: by });
  }

  @Get('runs/:id/budget')
  async budget(@Req() request: HttpRequestLike): Promise<BudgetStatus> {
    return this.runs.budgetStatus(await this.allowed(request, 'read'));
  }

  @Post('runs/:id/budget')
  @HttpCode(202)
  async decideBudget(@Req() request: HttpRequestLike): Promise<Run> {
    const { runId, by, given } = await this.command(request, 'budget', schemas.BUDGET_BODY);
    const { decision, amount, ...note } = given;
    return decision === 'grant'
      ? this.runs.grantBudget(runId, amount, { ...note, by })
      : this.runs.denyBudget(runId, { ...note, by });
  }

  @Get('interactions')
  async interactions(
    @Req() request: HttpRequestLike,
  ): Promise<{ interactions: InteractionView[]; nextCursor?: string }> {
    const query = readQuery(schemas.INTERACTION_LIST_QUERY, request['query']);
    const options = await this.access.interactions(actorOf(request), query);
    return options ? this.runs.pendingInteractions(options) : { interactions: [] };
  }

  @Get('runs/:id/interactions/:interactionId')
  async interaction(@Req() request: HttpRequestLike): Promise<InteractionView> {
    const interactionId = pathId(request, 'interactionId');
    return this.runs.getInteraction(await this.allowed(request, 'read'), interactionId);
  }

  @Post('runs/:id/interactions/:interactionId')
  @HttpCode(200)
  async decide(@Req() request: HttpRequestLike): Promise<InteractionView> {
    requireJson(request);
    const [runId, interactionId] = [pathId(request, 'id'), pathId(request, 'interactionId')];
    const actor = actorOf(request);
    await this.access.decide(actor, runId, interactionId);
    const decision = readBody(schemas.DECISION_BODY, request['body']);
    const response = { ...decision, by: actor.id, roles: actor.roles ?? [] };
    return this.runs.respond(runId, interactionId, response as Parameters<RunService['respond']>[2]);
  }

  private streamOf(
    runId: string,
    options: StreamOptions,
    headers?: Record<string, string>,
  ): HttpResult<StreamableFile> {
    const open = (signal: AbortSignal) => this.runs.stream(runId, { ...options, signal });
    return eventStream(open, { maxAgeMs: this.maxAgeMs, ...(headers && { headers }) });
  }

  private async command<F extends Fields>(
    request: HttpRequestLike,
    action: RunAction,
    schema: ObjectField<F>,
  ): Promise<Command<F>> {
    requireJson(request);
    const runId = await this.allowed(request, action);
    return { runId, by: actorOf(request).id, given: readBody(schema, request['body']) };
  }

  /** @returns the id of the run, once the actor may do that with it */
  private async allowed(request: HttpRequestLike, action: RunAction): Promise<string> {
    const runId = pathId(request, 'id');
    await this.access.run(actorOf(request), action, runId);
    return runId;
  }

  /**
   * The run as it was accepted where the store stops answering meanwhile: a client that is told otherwise starts it
   * again.
   */
  private async wait(request: HttpRequestLike, run: Run, seconds: number): Promise<Run> {
    const { signal, stop } = clientLeft(request);
    try {
      return await this.runs.result(run.id, { timeout: Math.max(1, seconds * 1000), signal });
    } catch (error) {
      if (AgentRunsError.is(error, 'STORE_UNAVAILABLE')) return run;
      throw error;
    } finally {
      stop();
    }
  }

  /** Where the new run is, below the address that was asked: prefix and version included. */
  private locationOf(request: HttpRequestLike, runId: string): string {
    const url = String(this.adapterHost.httpAdapter.getRequestUrl(request));
    return `${url.replace(/[?#].*$/s, '').replace(/\/+$/, '')}/${encodeURIComponent(runId)}`;
  }
}

/** @throws InvalidRequestError */
function pathId(request: HttpRequestLike, name: string): string {
  return requireId(name, (request['params'] as Record<string, unknown> | undefined)?.[name]);
}

/** A parameter that means nothing to a stream. */
function onlyForJson(field: string): InvalidRequestError {
  return invalidRequest([{ field, problem: 'goes with JSON only, not with text/event-stream' }]);
}
