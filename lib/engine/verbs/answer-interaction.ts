import type { Interaction, InteractionDecision } from '../../contracts/interaction.js';
import type { JsonObject, JsonValue } from '../../contracts/json.js';
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
import type { RunWorker } from '../run-worker.js';
import { NOTHING } from '../transitions.js';
import type { CallerTransition } from './caller-transition.js';
import { firstProblems } from '../values/problem-text.js';
import { addedArguments } from './added-arguments.js';
import { answerProblems } from './check-answers.js';
import { takeDecisions } from './waiting-runs.js';

const PAGE = 100;

/**
 * `respond`: an approval or a question is decided exactly once, by a holder of its role. What the person edited or
 * answered is validated before the store is asked; whether it may still be decided is decided under the run's lock, on
 * the store's clock.
 */
export class AnswerInteraction {
  constructor(
    private readonly ports: EnginePorts,
    private readonly worker: RunWorker,
    private readonly callers: CallerTransition,
  ) {}

  /**
   * @returns the ask as decided. @throws InteractionNotFoundError, ForbiddenError, AlreadyDecidedError,
   * InteractionExpiredError, InvalidAnswerError, InvalidArgumentsError
   */
  async respond(runId: string, interactionId: string, response: InteractionResponse): Promise<Interaction> {
    const id = requireId('runId', runId);
    const given = readResponse(response);
    let asked = await this.find(id, requireId('interactionId', interactionId));
    requireRole(asked, given.roles);
    const decision = this.withoutSameArguments(asked, await this.fit(asked, given.decision));
    requireFit('The response', decision, this.ports.options.maxPayloadBytes, { interactionId: asked.id });
    while (asked.status === 'pending') {
      const decided = await this.decideLocked(asked, decision);
      if (decided) return decided;
      // Taken up or withdrawn since it was read: what it has become answers.
      asked = await this.find(id, asked.id);
    }
    return this.decidedBefore(asked, decision);
  }

  /** Null when somebody else's decision is in force already, and spent. */
  private async decideLocked(asked: Interaction, decision: InteractionDecision): Promise<Interaction | null> {
    let decided: Interaction | null = null;
    await this.callers.moveFolded(
      asked.runId,
      false,
      (locked, state) => {
        const outcome = this.decide(locked, state, asked.id, decision);
        decided = outcome.asked;
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
  ): { asked: Interaction | null; moved: RunWrites } {
    const asked = locked.interactions.find(({ id }) => id === interactionId);
    if (!asked) return { asked: null, moved: NOTHING };
    if (asked.status !== 'pending') return { asked: this.decidedBefore(asked, decision), moved: NOTHING };
    if (asked.expiresAt !== null && asked.expiresAt <= locked.now) throw refusal({ ...asked, status: 'expired' });
    const decided: Interaction = { ...asked, status: statusOfDecision(decision), decision, decidedAt: locked.now };
    return { asked: decided, moved: takeDecisions(locked, state, [decided], this.ports.options) };
  }

  /** The identical decision again is answered with the stored one, unless its run has withdrawn it. */
  private decidedBefore(asked: Interaction, decision: InteractionDecision): Interaction {
    if (asked.decision && asked.status !== 'cancelled' && this.same(asked.decision, decision)) return asked;
    throw refusal(asked);
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
  private async fit(asked: Interaction, given: InteractionDecision): Promise<InteractionDecision> {
    const isApproval = 'decision' in given;
    if (isApproval !== (asked.kind === 'approval')) {
      const wanted =
        asked.kind === 'approval' ? "decision 'approve' or 'deny'" : "action 'accept', 'decline' or 'cancel'";
      throw invalidRequest([
        {
          field: isApproval ? 'decision' : 'action',
          problem: `does not fit: interaction ${asked.id} is ${asked.kind === 'approval' ? 'an approval' : 'a question'} and takes ${wanted}`,
        },
      ]);
    }
    if (isApproval && given.decision === 'approve' && given.arguments) {
      if (isApprovalGate(asked)) {
        const edited = await this.parseEdited(asked, given.arguments);
        const isChanged = this.canonical(edited) !== this.canonical(given.arguments);
        return { ...given, arguments: edited, ...(isChanged && { givenArguments: given.arguments }) };
      }
      // What a method asked to approve in the middle of its work has no schema; but what it never showed it will not
      // look for either.
      if (Object.keys(asked.arguments ?? {}).length === 0)
        throw new InvalidArgumentsError(
          `Interaction ${asked.id} shows no arguments, so there are none to edit. Approve it as it is, or deny it with a note.`,
        );
    }
    if (!isApproval && given.action === 'accept') {
      const problems = answerProblems(asked.questions ?? [], given.answers);
      if (problems.length > 0)
        throw new InvalidAnswerError(`The answers do not fit: ${problems.join('; ')}.`, { details: { problems } });
    }
    return given;
  }

  /** Whoever sends back what was shown changed nothing, and the model is not told otherwise. */
  private withoutSameArguments(asked: Interaction, decision: InteractionDecision): InteractionDecision {
    if (!('decision' in decision) || decision.decision !== 'approve' || !decision.arguments) return decision;
    const { arguments: edited, givenArguments: _, ...approval } = decision;
    return this.canonical(edited) === this.canonical(asked.arguments) ? approval : decision;
  }

  private async parseEdited(asked: Interaction, edited: JsonObject): Promise<JsonObject> {
    const tool = await this.toolOf(asked);
    if (!tool) {
      // Decided already: as it was given then, or a different decision.
      if (asked.status !== 'pending') return edited;
      throw new VersionUnavailableError(
        `Edited arguments cannot be checked here: ${asked.agent}@${asked.version} with tool ${asked.tool}, as run ${asked.runId} uses it, is not registered in this process.`,
      );
    }
    const parsed = await parseCall(this.ports, tool, edited, fieldsOf(asked));
    const problems = parsed.ok ? addedArguments(tool.inputSchema, edited, asked.arguments ?? {}) : parsed.problems;
    if (!parsed.ok || problems.length > 0) {
      const told = firstProblems(problems);
      throw new InvalidArgumentsError(`The edited arguments are not valid: ${told.join('; ')}.`, {
        details: { problems: told },
      });
    }
    if (tool.approval === 'rule' && asked.status === 'pending') await this.checkRule(asked, tool, parsed.input);
    return parsed.input;
  }

  /** As the run will execute it: another definition of the same version may check its arguments in another way. */
  private async toolOf(asked: Interaction): Promise<ToolDefinition | undefined> {
    const agent = this.ports.catalog.find(asked.agent, asked.version);
    if (!agent) return undefined;
    const { definitionHash } = await this.callers.load(asked.runId);
    if (agent.hash !== definitionHash && agent.definitionChange === 'block') return undefined;
    return agent.tools.find(({ name }) => name === asked.tool);
  }

  /** The rule sees the edited arguments too: it may demand another approver than the one the ask was for. */
  private async checkRule(asked: Interaction, tool: ToolDefinition, input: JsonObject): Promise<void> {
    const { actor } = await this.callers.load(asked.runId);
    const verdict = await approvalOf(
      this.ports,
      tool,
      input,
      { runId: asked.runId, callId: asked.callId ?? '', actor },
      fieldsOf(asked),
    );
    const role = verdict?.approverRole;
    if (role === undefined || role === asked.approverRole) return;
    throw new InvalidArgumentsError(
      `The edited arguments need an approver with role ${role}; this ask is for ${asked.approverRole ?? 'anybody'}. Deny it and let the model call again.`,
      { details: { approverRole: role } },
    );
  }

  /** As they were given: another process may read the same arguments otherwise, or not at all. */
  private same(a: InteractionDecision, b: InteractionDecision): boolean {
    return this.canonical(asGiven(a)) === this.canonical(asGiven(b));
  }

  private canonical(value: JsonValue): string {
    return this.ports.digester.canonical(value);
  }
}

function asGiven(decision: InteractionDecision): JsonObject {
  const { givenArguments, ...rest } = decision as Extract<InteractionDecision, { decision: 'approve' }>;
  return { ...rest, ...(givenArguments && { arguments: givenArguments }) };
}

/** Before anything is told about the ask: also to whoever repeats a decision. */
function requireRole({ id, approverRole }: Interaction, roles: readonly string[] | null): void {
  if (approverRole === null || roles === null || roles.includes(approverRole)) return;
  throw new ForbiddenError(`Interaction ${id} is decided by holders of the role ${approverRole}.`, {
    details: { interactionId: id, approverRole },
  });
}

function refusal(asked: Interaction): Error {
  const details = { interactionId: asked.id, status: asked.status, decision: asked.decision };
  if (asked.status === 'expired')
    return new InteractionExpiredError(`Interaction ${asked.id} expired before it was decided.`, { details });
  const by = asked.decision ? ` by ${asked.decision.by}` : '';
  return new AlreadyDecidedError(`Interaction ${asked.id} is ${asked.status}${by} already.`, { details });
}

function fieldsOf({ runId, operationKey }: Interaction): { runId: string; operation: string } {
  return { runId, operation: operationKey };
}
