import type { AgentDefinition } from '../../contracts/agent-definition.js';
import type { Message, UserMessage } from '../../contracts/message.js';
import type { CreateDecision, CreateSituation } from '../../contracts/ports/run-store.port.js';
import type { RunRecord } from '../../contracts/run.js';
import type { StartInput } from '../requests/read-requests.js';
import {
  ForbiddenError,
  InvalidRequestError,
  RequestConflictError,
  RunExistsError,
  SessionBusyError,
} from '../../errors/request.errors.js';

/** A run that is to be created, and everything decided about it before the store is asked. */
export interface Draft {
  id: string;
  agent: AgentDefinition;
  input: StartInput;
  requestScope: string;
  requestId: string;
  requestDigest: string;
  /** What the run would see, if the session has not moved when its row is locked. */
  history: { runId: string | null; order: number; messages: Message[]; note: UserMessage | null };
  /** Why the guardrail refused the prompt; null = it did not. */
  refusal: string | null;
}

/**
 * Decided under the session's lock, before anything of the session is shown to the caller: whoever got there first owns
 * the session, and a caller that names another owner learns nothing about it.
 */
export function ownershipRefusal({ input }: Draft, { session }: CreateSituation): CreateDecision | null {
  if (!session || input.sessionOwner === null || session.owner === input.sessionOwner) return null;
  return { do: 'refuse', error: foreignSession(session.id) };
}

export function foreignSession(sessionId: string): ForbiddenError {
  return new ForbiddenError(`Session ${sessionId} belongs to another owner. Use another session id.`, {
    details: { sessionId },
  });
}

/** What an earlier run with this id or this request id means for the start; null = there is none. */
export function existingRun(draft: Draft, { sameRequest, sameId }: CreateSituation): CreateDecision | null {
  // Without a request id of the caller's own, the run's id stands in for it: then it is the id that is taken.
  if (sameRequest && draft.input.requestId !== null) {
    if (!mayJoin(draft, sameRequest))
      return {
        do: 'refuse',
        error: new RequestConflictError(`Request id ${draft.requestId} was used before. Use a new one.`),
      };
    if (sameRequest.requestDigest === draft.requestDigest) return { do: 'return', run: sameRequest };
    const message = `Request id ${draft.requestId} was used for run ${sameRequest.id} with other input. Use a new request id, or send the same input.`;
    return { do: 'refuse', error: new RequestConflictError(message, { details: { runId: sameRequest.id } }) };
  }
  if (!sameId) return null;
  if (!mayJoin(draft, sameId))
    return {
      do: 'refuse',
      error: new RunExistsError(`Run id ${draft.id} is taken. Use another one, or leave runId out.`),
    };
  if (draft.input.ifExists !== 'reject') return { do: 'return', run: sameId };
  return {
    do: 'refuse',
    error: new RunExistsError(
      `Run ${draft.id} exists (${sameId.status}). Read it, or leave runId out to start another.`,
      { details: { runId: draft.id, status: sameId.status } },
    ),
  };
}

/**
 * Within a session its owner decides, who was compared before; a run of another session, or of another actor, is
 * nobody's to take up by a start.
 */
function mayJoin({ input }: Draft, run: RunRecord): boolean {
  if (input.sessionId !== null) return run.sessionId === input.sessionId;
  return input.actor === null || run.actor === null || run.actor.id === input.actor.id;
}

/** Why no run may be created now, as far as the session and the deadline tell. */
export function admissionRefusal(draft: Draft, { session, now }: CreateSituation, free: boolean): Error | null {
  if (session && session.mode !== draft.agent.sessionMode) {
    return new InvalidRequestError(
      `Session ${session.id} is ${session.mode}, but agent ${draft.agent.name} runs its sessions ${draft.agent.sessionMode}. Use another session id.`,
      { details: { fields: [{ field: 'sessionId', problem: 'is of the other mode' }] } },
    );
  }
  if (draft.input.deadlineAt !== null && draft.input.deadlineAt <= now) {
    return new InvalidRequestError('The deadline has passed already.', {
      details: { fields: [{ field: 'deadline', problem: 'has passed already' }] },
    });
  }
  if (free || draft.input.enqueue) return null;
  return new SessionBusyError(
    `Session ${session?.id} has an unfinished run (${session?.headRunId}). Wait for it, or start with enqueue: true.`,
    { details: { sessionId: session?.id, runId: session?.headRunId } },
  );
}
