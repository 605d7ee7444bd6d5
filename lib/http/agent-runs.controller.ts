/**
 * The routes about runs; those by which people take part in one are in run-people.controller. Thin: read the request, ask whether the actor may, call the service, choose a status. Each registration gets a subclass of its
 * own with its path, version and guards. Bodies and queries are `unknown` at run time, so that no global pipe of the host converts or refuses them.
 */
import { Body, Get, HttpCode, Inject, Param, Post, Query, Req } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Actor } from '../contracts/actor.js';
import type { Message } from '../contracts/message.js';
import type { SessionMessagesOptions } from '../contracts/run-requests.js';
import type {
  AgentDescription,
  EventPage,
  LifecycleRunEvent,
  Run,
  RunEvent,
  RunSummaryView,
} from '../contracts/run-view.js';
import { RunService } from '../engine/run-service.js';
import { AgentRunsError } from '../errors/agent-runs.error.js';
import type { HttpRequestLike } from './access/actor-resolver.port.js';
import { CurrentActor } from './access/current-actor.decorator.js';
import { RunAccess } from './access/run-access.service.js';
import type { RunAction } from './access/run-authorizer.port.js';
import { clientLeft } from './answer/client-left.js';
import { HttpAnswer } from './answer/http-answer.js';
import { httpProblem } from './answer/http-problem.mapper.js';
import { acceptsJson } from './input/accepts-json.js';
import { requireJson } from './input/json-body.js';
import { readList } from './input/list-requests.js';
import { longestPathId } from './input/longest-path-id.js';
import { readRestart, readRetry } from './input/people-requests.js';
import {
  readEventQuery,
  readPathId,
  readReason,
  readResolution,
  readResume,
  readStart,
  readWait,
} from './input/run-requests.js';
import { UntypedParameters } from './input/untyped-parameters.decorator.js';
import { presentSnapshot } from './operation.presenter.js';

@UntypedParameters()
export abstract class AgentRunsController {
  constructor(
    @Inject(RunService) private readonly runs: RunService,
    @Inject(RunAccess) private readonly access: RunAccess,
    @Inject(HttpAdapterHost) private readonly adapterHost: HttpAdapterHost,
  ) {}

  @Get('definitions')
  async definitions(@CurrentActor() actor: Actor): Promise<{ agents: AgentDescription[] }> {
    await this.access.definitions(actor);
    return { agents: this.runs.definitions() };
  }

  @Post('runs')
  async start(
    @CurrentActor() actor: Actor,
    @Req() request: HttpRequestLike,
    @Body() body: unknown,
    @Query() query: unknown,
  ): Promise<HttpAnswer<Run>> {
    requireJson(request);
    const wait = readWait(query);
    requireJsonAccepted(request);
    const options = readStart(body, longestPathId(this.adapterHost.httpAdapter));
    const run = await this.access.start(actor, options, (allowed) => this.runs.start({ ...allowed, actor }));
    const headers: Record<string, string> = run.deduplicated ? {} : { Location: this.locationOf(request, run.id) };
    if (wait === undefined) return new HttpAnswer(run.deduplicated ? 200 : 202, run, headers);
    const waited = await this.wait(request, run, wait);
    const isAtRest = waited.phase === 'settled' || waited.phase === 'suspended';
    return new HttpAnswer(isAtRest ? 200 : 202, run.deduplicated ? { ...waited, deduplicated: true } : waited, headers);
  }

  @Get('runs')
  async list(
    @CurrentActor() actor: Actor,
    @Query() query: unknown,
  ): Promise<{ runs: RunSummaryView[]; nextCursor?: string }> {
    const options = await this.access.list(actor, readList(query));
    return options ? this.runs.list(options) : { runs: [] };
  }

  @Get('runs/:id')
  async get(@CurrentActor() actor: Actor, @Param('id') id: unknown): Promise<Run> {
    return this.runs.get(await this.allowed(actor, 'read', id));
  }

  @Get('runs/:id/snapshot')
  async snapshot(@CurrentActor() actor: Actor, @Param('id') id: unknown) {
    return presentSnapshot(await this.runs.snapshot(await this.allowed(actor, 'read', id)));
  }

  @Get('runs/:id/messages')
  async messages(@CurrentActor() actor: Actor, @Param('id') id: unknown): Promise<{ messages: Message[] }> {
    return { messages: await this.runs.messages(await this.allowed(actor, 'read', id)) };
  }

  @Get('runs/:id/events')
  async events(
    @CurrentActor() actor: Actor,
    @Req() request: HttpRequestLike,
    @Param('id') id: unknown,
    @Query() query: unknown,
  ): Promise<EventPage<RunEvent | LifecycleRunEvent>> {
    const runId = await this.allowed(actor, 'read', id);
    const options = readEventQuery(query);
    requireJsonAccepted(request);
    return this.runs.events(runId, options);
  }

  @Get('sessions/:sessionId/messages')
  async sessionMessages(
    @CurrentActor() actor: Actor,
    @Param('sessionId') id: unknown,
  ): Promise<{ messages: Message[] }> {
    const sessionId = readPathId('sessionId', id);
    const read = (owner: SessionMessagesOptions) => this.runs.sessionMessages(sessionId, owner);
    return { messages: await this.access.session(actor, sessionId, read) };
  }

  @Post('runs/:id/resume')
  @HttpCode(202)
  async resume(
    @CurrentActor() actor: Actor,
    @Req() request: HttpRequestLike,
    @Param('id') id: unknown,
    @Body() body: unknown,
  ): Promise<Run> {
    requireJson(request);
    const runId = await this.allowed(actor, 'resume', id);
    const { budget, allowRunningTakeover, reason } = readResume(body);
    if (allowRunningTakeover) await this.access.takeover(actor, runId);
    if (budget !== undefined) await this.access.run(actor, 'budget', runId);
    return this.runs.resume(runId, {
      by: actor.id,
      ...(reason === undefined ? {} : { reason }),
      ...(budget === undefined ? {} : { budget }),
      ...(allowRunningTakeover && reason !== undefined
        ? { allowRunningTakeover, confirmation: { by: actor.id, reason } }
        : {}),
    });
  }

  @Post('runs/:id/retry')
  @HttpCode(202)
  async retry(
    @CurrentActor() actor: Actor,
    @Req() request: HttpRequestLike,
    @Param('id') id: unknown,
    @Body() body: unknown,
  ): Promise<Run> {
    requireJson(request);
    const runId = await this.allowed(actor, 'retry', id);
    const given = readRetry(body);
    if (given.maxTurns !== undefined) await this.access.run(actor, 'budget', runId);
    return this.runs.retry(runId, { ...given, by: actor.id });
  }

  @Post('runs/:id/cancel')
  @HttpCode(202)
  async cancel(
    @CurrentActor() actor: Actor,
    @Req() request: HttpRequestLike,
    @Param('id') id: unknown,
    @Body() body: unknown,
  ): Promise<Run> {
    requireJson(request);
    const runId = await this.allowed(actor, 'cancel', id);
    return this.runs.cancel(runId, { ...readReason(body), by: actor.id });
  }

  @Post('runs/:id/interrupt')
  @HttpCode(202)
  async interrupt(
    @CurrentActor() actor: Actor,
    @Req() request: HttpRequestLike,
    @Param('id') id: unknown,
    @Body() body: unknown,
  ): Promise<Run> {
    requireJson(request);
    const runId = await this.allowed(actor, 'interrupt', id);
    return this.runs.interrupt(runId, { ...readReason(body), by: actor.id });
  }

  @Post('runs/:id/restart')
  @HttpCode(202)
  async restart(
    @CurrentActor() actor: Actor,
    @Req() request: HttpRequestLike,
    @Param('id') id: unknown,
    @Body() body: unknown,
  ): Promise<Run> {
    requireJson(request);
    const runId = await this.allowed(actor, 'restart', id);
    const given = readRestart(body);
    if (given.maxTurns !== undefined) await this.access.run(actor, 'budget', runId);
    return this.runs.restart(runId, { ...given, by: actor.id });
  }

  @Post('runs/:id/operations/resolve')
  @HttpCode(202)
  async resolve(
    @CurrentActor() actor: Actor,
    @Req() request: HttpRequestLike,
    @Param('id') id: unknown,
    @Body() body: unknown,
  ): Promise<Run> {
    requireJson(request);
    const runId = await this.allowed(actor, 'resolve', id);
    return this.runs.resolveTool(runId, { ...readResolution(body), by: actor.id });
  }

  /** The run as it was accepted where the store stops answering meanwhile: a client that is told otherwise starts it again. */
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

  private async allowed(actor: Actor, action: RunAction, id: unknown) {
    const runId = readPathId('id', id);
    await this.access.run(actor, action, runId);
    return runId;
  }

  /** Where the new run is, below the address that was asked: prefix and version included. */
  private locationOf(request: HttpRequestLike, runId: string): string {
    const url = String(this.adapterHost.httpAdapter.getRequestUrl(request));
    return `${url.replace(/[?#].*$/s, '').replace(/\/+$/, '')}/${encodeURIComponent(runId)}`;
  }
}

/** @throws HttpProblem 406; streams do not exist yet */
function requireJsonAccepted({ headers }: HttpRequestLike): void {
  if (acceptsJson(headers.accept)) return;
  throw httpProblem(406, 'NOT_ACCEPTABLE', 'Runs and events come as JSON: ask with Accept: application/json or */*.');
}
