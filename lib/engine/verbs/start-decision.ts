import type { AgentDefinition } from '../../contracts/agent-definition.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { Message, UserMessage } from '../../contracts/message.js';
import type { CreateDecision, CreateSituation } from '../../contracts/ports/run-store.port.js';
import { CONTRACT_VERSION, type FrozenOptions, type RunRecord, type SessionRecord } from '../../contracts/run.js';
import {
  ForbiddenError,
  InvalidRequestError,
  RequestConflictError,
  RunExistsError,
  SessionBusyError,
} from '../../errors/request.errors.js';
import { emptyState, type RunState } from '../journal/run-state.js';
import type { StartInput } from '../requests/read-requests.js';
import { recordedFailure } from '../values/recorded-error.js';

/** A run that is to be created, and everything decided about it before the store is called. */
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

/** The first step of a run that is started inline: claimed by this worker from its first moment. */
export interface InlineStart {
  workerId: string;
  state: RunState;
  entries: JournalEntry[];
}

type Insert = Extract<CreateDecision, { do: 'insert' }>;
export type StartDecision = Exclude<CreateDecision, Insert> | (Insert & { inline: InlineStart | null });

/**
 * What `start` does, decided under the session's lock: pure.
 * @param startInline null = this process has no free slot; it returns null where the first step needs more thought
 * @param admission refuses a run that would wait where too many wait already
 * @throws ForbiddenError, InvalidRequestError, RequestConflictError, RunExistsError, SessionBusyError,
 * TooManyPendingError
 */
export function decideStart(
  draft: Draft,
  situation: CreateSituation,
  startInline: ((situation: CreateSituation) => InlineStart | null) | null,
  admission: () => Error | null,
): StartDecision {
  const { session, now } = situation;
  requireOwner(draft, session);
  const existing = existingRun(draft, situation);
  if (existing) return { do: 'return', run: existing };
  if (draft.refusal !== null) {
    const error = recordedFailure('INPUT_REFUSED', `The prompt was refused: ${draft.refusal}`);
    // Settled from its first moment: it never holds its session and its model is never called.
    return insertion(draft, situation, { status: 'blocked', error, finishedAt: now }, [
      { type: 'run.blocked', at: now, error },
    ]);
  }
  const isParallel = draft.agent.sessionMode === 'parallel';
  const isFree = isParallel || session === null || session.headRunId === null;
  requireAdmissible(draft, situation, isFree);
  const refusal = startInline && isFree ? null : admission();
  if (refusal) throw refusal;
  const inline = isFree ? (startInline?.(situation) ?? null) : null;
  if (!isFree)
    return insertion(draft, situation, { status: 'queued', wake: { cause: 'submitted' } }, [
      { type: 'run.queued', at: now, behindRunId: session?.headRunId ?? '' },
    ]);
  const history =
    isParallel && !inline ? {} : { historyCaptured: true, historyRunId: session?.latestCompletedRunId ?? null };
  if (!inline) return insertion(draft, situation, { status: 'pending', wake: { cause: 'submitted' }, ...history }, []);
  const claim = { status: 'running', attempt: 1, owner: inline.workerId, claimedAt: now, startedAt: now } as const;
  return insertion(draft, situation, { ...claim, ...history }, inline.entries, inline);
}

/** @throws ForbiddenError before anything of the session is shown to a caller who names another owner */
function requireOwner({ input }: Draft, session: SessionRecord | null): void {
  if (session && input.sessionOwner !== null && session.owner !== input.sessionOwner) throw foreignSession(session.id);
}

export function foreignSession(sessionId: string): ForbiddenError {
  return new ForbiddenError(`Session ${sessionId} belongs to another owner. Use another session id.`, {
    details: { sessionId },
  });
}

/** What an earlier run with this id or this request id means for the start; null = there is none. */
function existingRun(draft: Draft, { sameRequest, sameId }: CreateSituation): RunRecord | null {
  // Without a request id of the caller's own, the run's id stands in for it: then it is the id that is taken.
  if (sameRequest && draft.input.requestId !== null) {
    if (!mayJoin(draft, sameRequest))
      throw new RequestConflictError(`Request id ${draft.requestId} was used before. Use a new one.`);
    if (sameRequest.requestDigest === draft.requestDigest) return sameRequest;
    throw new RequestConflictError(
      `Request id ${draft.requestId} was used for run ${sameRequest.id} with other input. Use a new request id, or send the same input.`,
      { details: { runId: sameRequest.id } },
    );
  }
  if (!sameId) return null;
  if (!mayJoin(draft, sameId))
    throw new RunExistsError(`Run id ${draft.id} is taken. Use another one, or leave runId out.`);
  if (draft.input.ifExists !== 'reject') return sameId;
  throw new RunExistsError(`Run ${draft.id} exists (${sameId.status}). Read it, or leave runId out to start another.`, {
    details: { runId: draft.id, status: sameId.status },
  });
}

/**
 * Within a session its owner decides, who was compared before. A start takes up no run of another session or of another
 * actor.
 */
function mayJoin({ input }: Draft, run: RunRecord): boolean {
  if (input.sessionId !== null) return run.sessionId === input.sessionId;
  return input.actor === null || run.actor === null || run.actor.id === input.actor.id;
}

function requireAdmissible({ agent, input }: Draft, { session, now }: CreateSituation, isFree: boolean): void {
  if (session && session.mode !== agent.sessionMode)
    throw new InvalidRequestError(
      `Session ${session.id} is ${session.mode}, but agent ${agent.name} runs its sessions ${agent.sessionMode}. Use another session id.`,
      { details: { fields: [{ field: 'sessionId', problem: 'is of the other mode' }] } },
    );
  if (input.deadlineAt !== null && input.deadlineAt <= now)
    throw new InvalidRequestError('The deadline has passed already.', {
      details: { fields: [{ field: 'deadline', problem: 'has passed already' }] },
    });
  if (isFree || input.enqueue) return;
  throw new SessionBusyError(
    `Session ${session?.id} has an unfinished run (${session?.headRunId}). Wait for it, or start with enqueue: true.`,
    { details: { sessionId: session?.id, runId: session?.headRunId } },
  );
}

/** @param entries after `run.submitted`; those of an inline start are whole */
function insertion(
  draft: Draft,
  { session, now }: CreateSituation,
  initial: Partial<RunRecord> & Pick<RunRecord, 'status'>,
  entries: JournalEntry[],
  inline: InlineStart | null = null,
): StartDecision {
  const run: RunRecord = { ...newRun(draft, session, now), ...initial };
  return {
    do: 'insert',
    run,
    entries: inline ? entries : [submittedEntry(draft, now), ...entries],
    totals: inline?.state.totals ?? run.totals,
    session: nextSession(draft, session, run),
    inline,
  };
}

export function submittedEntry({ input }: Draft, at: number): JournalEntry {
  return { type: 'run.submitted', at, messages: input.messages, ...(input.actor && { actor: input.actor }) };
}

export function frozenOptions({ agent, input }: Draft): FrozenOptions {
  return {
    maxTurns: agent.maxTurns,
    modelRetry: agent.modelRetry,
    toolConcurrency: agent.toolConcurrency,
    maxDurationMs: input.maxDurationMs ?? agent.maxDurationMs,
    recovery: Object.fromEntries(agent.tools.map((tool) => [`${tool.name}@${tool.version}`, tool.recovery])),
  };
}

/** The session with this run in it, which is its head unless it waits in line or is blocked. */
function nextSession(
  { agent, input }: Draft,
  session: SessionRecord | null,
  { id, status, sessionOrder }: RunRecord,
): SessionRecord | null {
  if (input.sessionId === null || sessionOrder === null) return null;
  const before: SessionRecord = session ?? {
    id: input.sessionId,
    mode: agent.sessionMode,
    owner: input.sessionOwner,
    headRunId: null,
    latestCompletedRunId: null,
    lastOrder: 0,
    startedOrder: 0,
  };
  const isHead = status === 'pending' || status === 'running';
  return {
    ...before,
    lastOrder: sessionOrder,
    ...(isHead && { startedOrder: sessionOrder, headRunId: agent.sessionMode === 'serial' ? id : null }),
  };
}

function newRun(draft: Draft, session: SessionRecord | null, now: number): Omit<RunRecord, 'status'> {
  const { agent, input } = draft;
  return {
    id: draft.id,
    kind: 'agent',
    agent: agent.name,
    version: agent.version,
    definitionHash: agent.hash,
    contractVersion: CONTRACT_VERSION,
    sessionId: input.sessionId,
    sessionMode: input.sessionId === null ? null : agent.sessionMode,
    sessionOrder: input.sessionId === null ? null : (session?.lastOrder ?? 0) + 1,
    historyRunId: null,
    historyCaptured: false,
    precedingRunId: null,
    requestScope: draft.requestScope,
    requestId: draft.requestId,
    requestDigest: draft.requestDigest,
    revision: 1,
    waitingFor: [],
    attention: null,
    attempt: 0,
    owner: null,
    wake: null,
    nextAttemptAt: null,
    deadlineAt: input.deadlineAt,
    interruptRequest: null,
    recoveries: 0,
    resultsAtClaim: 0,
    restarts: 0,
    budgetMaxTotalTokens: input.maxTotalTokens,
    actor: input.actor,
    frozen: frozenOptions(draft),
    output: null,
    error: null,
    metadata: input.metadata,
    activeMs: 0,
    claimedAt: null,
    createdAt: now,
    updatedAt: now,
    startedAt: null,
    finishedAt: null,
    sequence: 0,
    totals: emptyState(draft.id).totals,
  };
}
