import type { Interaction, InteractionDecision } from '../../contracts/interaction.js';
import type { JsonObject } from '../../contracts/json.js';
import type { LockedRun, RunWrites } from '../../contracts/ports/run-store.port.js';
import type { InteractionResponse } from '../../contracts/run-requests.js';
import { invalidRequest, requireId } from '../../contracts/schema.js';
import type { ToolDefinition } from '../../contracts/agent-definition.js';
import {
  AlreadyDecidedError,
  ForbiddenError,
  InteractionExpiredError,
  InteractionNotFoundError,
  InvalidAnswerError,
  InvalidArgumentsError,
  VersionUnavailableError,
} from '../../errors/request.errors.js';
import type { EnginePorts } from '../engine-ports.js';
import { approvalOf, parseCall } from '../execution/validate-call.js';
import { isApprovalGate, statusOfDecision } from '../interactions.js';
import type { RunState } from '../journal/run-state.js';
import { requireFit } from '../requests/payload.js';
import { readResponse } from '../requests/read-requests.js';
import { addedArguments, answerProblems } from '../requests/response-checks.js';
import type { RunWorker } from '../run-worker.js';
import { NOTHING } from '../transitions.js';
import type { CallerTransition } from './caller-transition.js';
import { firstProblems } from '../values/plain-text.js';
import { takeDecisions } from './waiting-runs.js';

const PAGE = 100;

/**
 * `respond`: an approval or a question is decided exactly once, by a holder of its role. Edits and answers are
 * validated before the transaction; whether it may still be decided is decided under the run's lock, by the store's
 * clock.
 */
export class AnswerInteraction {
  constructor(
    private readonly ports: EnginePorts,
    private readonly worker: RunWorker,
    private readonly callers: CallerTransition,
  ) {}

  /**
   * @returns the interaction as decided. @throws InteractionNotFoundError, ForbiddenError, AlreadyDecidedError,
   * InteractionExpiredError, InvalidAnswerError, InvalidArgumentsError
   */
  async respond(runId: string, interactionId: string, response: InteractionResponse): Promise<Interaction> {
    const id = requireId('runId', runId);
    const given = readResponse(response);
    let interaction = await this.find(id, requireId('interactionId', interactionId));
    requireRole(interaction, given.roles);
    const decision = this.withoutSameArguments(interaction, await this.fit(interaction, given.decision));
    requireFit('The response', decision, this.ports.options.maxPayloadBytes, { interactionId: interaction.id });
    while (interaction.status === 'pending') {
      const decided = await this.decideLocked(interaction, decision);
      if (decided) return decided;
      // Taken up or withdrawn since it was read: what it has become answers.
      interaction = await this.find(id, interaction.id);
    }
    return this.decidedBefore(interaction, decision);
  }

  /** Null when another decision is in force already, and spent. */
  private async decideLocked(interaction: Interaction, decision: InteractionDecision): Promise<Interaction | null> {
    let decided: Interaction | null = null;
    await this.callers.moveFolded(
      interaction.runId,
      false,
      (locked, state) => {
        const outcome = this.decide(locked, state, interaction.id, decision);
        decided = outcome.interaction;
        return outcome.moved;
      },
      ({ run }) => run.status === 'running',
    );
    if (decided) this.worker.wake();
    return decided;
  }

  private decide(
    locked: LockedRun,
    state: RunState,
    interactionId: string,
    decision: InteractionDecision,
  ): { interaction: Interaction | null; moved: RunWrites } {
    const interaction = locked.interactions.find(({ id }) => id === interactionId);
    if (!interaction) return { interaction: null, moved: NOTHING };
    if (interaction.status !== 'pending')
      return { interaction: this.decidedBefore(interaction, decision), moved: NOTHING };
    if (interaction.expiresAt !== null && interaction.expiresAt <= locked.now)
      throw refusal({ ...interaction, status: 'expired' });
    const decided: Interaction = {
      ...interaction,
      status: statusOfDecision(decision),
      decision,
      decidedAt: locked.now,
    };
    return { interaction: decided, moved: takeDecisions(locked, state, [decided], this.ports.options) };
  }

  /** The identical decision again is answered with the stored one, unless its run has withdrawn it. */
  private decidedBefore(interaction: Interaction, decision: InteractionDecision): Interaction {
    const { decision: before, status } = interaction;
    if (before && status !== 'cancelled' && this.ports.digester.isSame(asGiven(before), asGiven(decision)))
      return interaction;
    throw refusal(interaction);
  }

  /** @throws InteractionNotFoundError, RunNotFoundError */
  async find(runId: string, interactionId: string): Promise<Interaction> {
    for (let cursor: string | undefined; ;) {
      const page = await this.ports.store.interactions({ runId, limit: PAGE, ...(cursor !== undefined && { cursor }) });
      const found = page.items.find(({ id }) => id === interactionId);
      if (found) return found;
      cursor = page.nextCursor;
      if (cursor !== undefined) continue;
      await this.callers.load(runId);
      throw new InteractionNotFoundError(`Run ${runId} has no interaction ${interactionId}.`, {
        details: { runId, interactionId },
      });
    }
  }

  /**
   * The decision as it will be stored: edited arguments parsed like a call's, answers checked against their questions.
   */
  private async fit(interaction: Interaction, given: InteractionDecision): Promise<InteractionDecision> {
    const isApproval = 'decision' in given;
    if (isApproval !== (interaction.kind === 'approval')) {
      const wanted =
        interaction.kind === 'approval' ? "decision 'approve' or 'deny'" : "action 'accept', 'decline' or 'cancel'";
      throw invalidRequest([
        {
          field: isApproval ? 'decision' : 'action',
          problem: `does not fit: interaction ${interaction.id} is ${interaction.kind === 'approval' ? 'an approval' : 'a question'} and takes ${wanted}`,
        },
      ]);
    }
    if (isApproval && given.decision === 'approve' && given.arguments) {
      if (isApprovalGate(interaction)) {
        const edited = await this.parseEdited(interaction, given.arguments);
        const isChanged = !this.ports.digester.isSame(edited, given.arguments);
        return { ...given, arguments: edited, ...(isChanged && { givenArguments: given.arguments }) };
      }
      // A method's own request has no schema, and the method does not look for arguments that it did not show.
      if (Object.keys(interaction.arguments ?? {}).length === 0)
        throw new InvalidArgumentsError(
          `Interaction ${interaction.id} shows no arguments, so there are none to edit. Approve it as it is, or deny it with a note.`,
        );
    }
    if (!isApproval && given.action === 'accept') {
      const problems = answerProblems(interaction.questions ?? [], given.answers);
      if (problems.length > 0)
        throw new InvalidAnswerError(`The answers do not fit: ${problems.join('; ')}.`, { details: { problems } });
    }
    return given;
  }

  /** Arguments sent back as they were shown are no edit. */
  private withoutSameArguments(interaction: Interaction, decision: InteractionDecision): InteractionDecision {
    if (!('decision' in decision) || decision.decision !== 'approve' || !decision.arguments) return decision;
    const { arguments: edited, givenArguments: _, ...approval } = decision;
    return this.ports.digester.isSame(edited, interaction.arguments) ? approval : decision;
  }

  private async parseEdited(interaction: Interaction, edited: JsonObject): Promise<JsonObject> {
    const tool = await this.toolOf(interaction);
    if (!tool) {
      // Decided already: as it was given then, or a different decision.
      if (interaction.status !== 'pending') return edited;
      throw new VersionUnavailableError(
        `Edited arguments cannot be checked here: ${interaction.agent}@${interaction.version} with tool ${interaction.tool}, as run ${interaction.runId} uses it, is not registered in this process.`,
      );
    }
    const parsed = await parseCall(this.ports, tool, edited, fieldsOf(interaction));
    const problems = parsed.ok
      ? addedArguments(tool.inputSchema, edited, interaction.arguments ?? {})
      : parsed.problems;
    if (!parsed.ok || problems.length > 0) {
      const told = firstProblems(problems);
      throw new InvalidArgumentsError(`The edited arguments are not valid: ${told.join('; ')}.`, {
        details: { problems: told },
      });
    }
    if (tool.approval === 'rule' && interaction.status === 'pending')
      await this.checkRule(interaction, tool, parsed.input);
    return parsed.input;
  }

  /** As the run will execute it: another definition of the same version may check its arguments in another way. */
  private async toolOf(interaction: Interaction): Promise<ToolDefinition | undefined> {
    const agent = this.ports.catalog.find(interaction.agent, interaction.version);
    if (!agent) return undefined;
    const { definitionHash } = await this.callers.load(interaction.runId);
    if (agent.hash !== definitionHash && agent.definitionChange === 'block') return undefined;
    return agent.tools.find(({ name }) => name === interaction.tool);
  }

  /** The rule sees the edited arguments too: it may demand another approver than the interaction is for. */
  private async checkRule(interaction: Interaction, tool: ToolDefinition, input: JsonObject): Promise<void> {
    const { actor } = await this.callers.load(interaction.runId);
    const verdict = await approvalOf(
      this.ports,
      tool,
      input,
      { runId: interaction.runId, callId: interaction.callId ?? '', actor },
      fieldsOf(interaction),
    );
    const role = verdict?.approverRole;
    if (role === undefined || role === interaction.approverRole) return;
    throw new InvalidArgumentsError(
      `The edited arguments need an approver with role ${role}; this interaction is for ${interaction.approverRole ?? 'anybody'}. Deny it and let the model call again.`,
      { details: { approverRole: role } },
    );
  }
}

/** As it was given: another process may read the same arguments otherwise, or not at all. */
function asGiven(decision: InteractionDecision): JsonObject {
  const { givenArguments, ...rest } = decision as Extract<InteractionDecision, { decision: 'approve' }>;
  return { ...rest, ...(givenArguments && { arguments: givenArguments }) };
}

/** Before anything about the interaction is disclosed, also where a decision is repeated. */
function requireRole({ id, approverRole }: Interaction, roles: readonly string[] | null): void {
  if (approverRole === null || roles === null || roles.includes(approverRole)) return;
  throw new ForbiddenError(`Interaction ${id} is decided by holders of the role ${approverRole}.`, {
    details: { interactionId: id, approverRole },
  });
}

function refusal(interaction: Interaction): Error {
  const details = { interactionId: interaction.id, status: interaction.status, decision: interaction.decision };
  if (interaction.status === 'expired')
    return new InteractionExpiredError(`Interaction ${interaction.id} expired before it was decided.`, { details });
  const by = interaction.decision ? ` by ${interaction.decision.by}` : '';
  return new AlreadyDecidedError(`Interaction ${interaction.id} is ${interaction.status}${by} already.`, { details });
}

function fieldsOf({ runId, operationKey }: Interaction): { runId: string; operation: string } {
  return { runId, operation: operationKey };
}
