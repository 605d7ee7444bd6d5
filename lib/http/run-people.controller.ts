/**
 * The routes by which people take part in a run: they decide its asks, send it messages and watch over its budget. As thin as the other controller, and
 * registered beside it under the same path and guards.
 */
import { Body, Get, HttpCode, Inject, Param, Post, Query, Req } from '@nestjs/common';
import type { Actor } from '../contracts/actor.js';
import type { SteerReceipt } from '../contracts/run-requests.js';
import type { BudgetStatus, InteractionView, Run } from '../contracts/run-view.js';
import { RunService } from '../engine/run-service.js';
import type { HttpRequestLike } from './access/actor-resolver.port.js';
import { CurrentActor } from './access/current-actor.decorator.js';
import { RunAccess } from './access/run-access.service.js';
import type { RunAction } from './access/run-authorizer.port.js';
import { requireJson } from './input/json-body.js';
import { readInteractionList } from './input/list-requests.js';
import { readBudgetDecision, readDecision, readSteer } from './input/people-requests.js';
import { readPathId } from './input/run-requests.js';
import { UntypedParameters } from './input/untyped-parameters.decorator.js';

@UntypedParameters()
export abstract class RunPeopleController {
  constructor(
    @Inject(RunService) private readonly runs: RunService,
    @Inject(RunAccess) private readonly access: RunAccess,
  ) {}

  @Get('interactions')
  async interactions(
    @CurrentActor() actor: Actor,
    @Query() query: unknown,
  ): Promise<{ interactions: InteractionView[]; nextCursor?: string }> {
    const options = await this.access.interactions(actor, readInteractionList(query));
    return options ? this.runs.pendingInteractions(options) : { interactions: [] };
  }

  @Get('runs/:id/interactions/:interactionId')
  async interaction(
    @CurrentActor() actor: Actor,
    @Param('id') id: unknown,
    @Param('interactionId') interaction: unknown,
  ): Promise<InteractionView> {
    const interactionId = readPathId('interactionId', interaction);
    return this.runs.getInteraction(await this.allowed(actor, 'read', id), interactionId);
  }

  /**
   * The body is read from the request itself, because pipes are not given that: one that trims texts or lowers their case would make decisions of words that
   * are none.
   */
  @Post('runs/:id/interactions/:interactionId')
  @HttpCode(200)
  async decide(
    @CurrentActor() actor: Actor,
    @Req() request: HttpRequestLike,
    @Param('id') id: unknown,
    @Param('interactionId') interaction: unknown,
  ): Promise<InteractionView> {
    requireJson(request);
    const runId = readPathId('id', id);
    const interactionId = readPathId('interactionId', interaction);
    await this.access.decide(actor, runId, interactionId);
    const decision = readDecision(request.body);
    const { id: by, roles = [] } = actor;
    return this.runs.respond(runId, interactionId, { ...decision, by, roles });
  }

  @Post('runs/:id/steer')
  @HttpCode(202)
  async steer(
    @CurrentActor() actor: Actor,
    @Req() request: HttpRequestLike,
    @Param('id') id: unknown,
    @Body() body: unknown,
  ): Promise<SteerReceipt> {
    requireJson(request);
    const runId = await this.allowed(actor, 'steer', id);
    const { message, ...options } = readSteer(body);
    return this.runs.steer(runId, message, { ...options, sender: actor.id });
  }

  @Get('runs/:id/budget')
  async budget(@CurrentActor() actor: Actor, @Param('id') id: unknown): Promise<BudgetStatus> {
    return this.runs.budgetStatus(await this.allowed(actor, 'read', id));
  }

  /** Read from the request itself, for the same reason. */
  @Post('runs/:id/budget')
  @HttpCode(202)
  async decideBudget(
    @CurrentActor() actor: Actor,
    @Req() request: HttpRequestLike,
    @Param('id') id: unknown,
  ): Promise<Run> {
    requireJson(request);
    const runId = await this.allowed(actor, 'budget', id);
    const { decision, amount, ...note } = readBudgetDecision(request.body);
    const told = { ...note, by: actor.id };
    return decision === 'grant' ? this.runs.grantBudget(runId, amount, told) : this.runs.denyBudget(runId, told);
  }

  private async allowed(actor: Actor, action: RunAction, id: unknown): Promise<string> {
    const runId = readPathId('id', id);
    await this.access.run(actor, action, runId);
    return runId;
  }
}
