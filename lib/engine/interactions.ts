import type { Interaction, InteractionDecision, InteractionStatus, Question } from '../contracts/interaction.js';
import type { EntryOf, JournalEntry } from '../contracts/journal-entry.js';
import type { JsonObject } from '../contracts/json.js';
import type { Digester } from '../contracts/ports/system.port.js';
import type { LockedRun } from '../contracts/ports/run-store.port.js';
import type { RunRecord } from '../contracts/run.js';
import type { CallState, RunState } from './journal/run-state.js';

/** What is asked, before it has an id, a digest and a date. */
export interface InteractionDraft {
  kind: Interaction['kind'];
  ordinal: Interaction['ordinal'];
  arguments: JsonObject | null;
  reason: string | null;
  risk: string | null;
  approverRole: string | null;
  questions: Question[] | null;
  /** Ms; null = never. */
  expiresInMs: number | null;
}

/** What of a call an ask is bound to. */
export type InteractionCall = Pick<CallState, 'key' | 'callId' | 'name' | 'toolVersion'> &
  Partial<Pick<CallState, 'withdrawn'>>;
export type InteractionRun = Pick<RunRecord, 'id' | 'sessionId' | 'agent' | 'version' | 'actor'>;

/** An ask with the call it is about. */
export interface CallInteraction {
  draft: InteractionDraft;
  call: CallState;
}

/** Asks about calls that nobody was asked about yet. */
export function pendingInteractionsOf(calls: readonly CallState[], defaultExpiryMs: number | null): CallInteraction[] {
  return calls.flatMap((call) => {
    const draft = pendingInteractionOf(call, defaultExpiryMs);
    return draft ? [{ draft, call }] : [];
  });
}

function pendingInteractionOf(call: CallState, defaultExpiryMs: number | null): InteractionDraft | null {
  if (call.status !== 'waiting' || call.interactionId !== null || call.methodInteractions.length > 0) return null;
  return gateDraft(call, defaultExpiryMs);
}

/** The ask that decides whether a call is begun. */
export function gateDraft(
  { input, approval, questions }: Pick<CallState, 'input' | 'approval' | 'questions'>,
  defaultExpiryMs: number | null,
): InteractionDraft {
  return {
    kind: questions ? 'question' : 'approval',
    ordinal: 0,
    arguments: questions ? null : input,
    reason: approval?.reason ?? null,
    risk: approval?.risk ?? null,
    approverRole: approval?.approverRole ?? null,
    questions,
    expiresInMs: approval?.expiresInMs === undefined ? defaultExpiryMs : approval.expiresInMs,
  };
}

/** What an ask is bound to: a decision for one digest decides nothing else. */
export function interactionDigest(
  ask: InteractionDraft,
  call: InteractionCall,
  run: InteractionRun,
  digester: Digester,
): string {
  const bound = {
    run: run.id,
    key: call.key,
    ordinal: ask.ordinal,
    agent: `${run.agent}@${run.version}`,
    tool: `${call.name}@${call.toolVersion ?? ''}`,
    arguments: ask.arguments,
    questions: ask.questions,
  };
  return digester.digest(digester.canonical(bound));
}

/**
 * Derived from run, operation and ordinal, so that a repeated ask is the same ask. One that was withdrawn stays so
 * (I7): the next has an id of its own.
 */
export function deriveInteractionId(
  ask: InteractionDraft,
  call: InteractionCall,
  run: Pick<RunRecord, 'id'>,
  digester: Digester,
): string {
  const again = call.withdrawn ? `/${call.withdrawn}` : '';
  return `int_${digester.digest(`${run.id}/${call.key}/${ask.ordinal}${again}`).slice(0, 24)}`;
}

/** Whether an ask decides if its call is begun, rather than being the method's own. */
export function isApprovalGate({ ordinal }: Interaction): boolean {
  return ordinal === 0;
}

/**
 * Asks of a run: built from the call as it will be executed and bound to its digest (I7), committed before anybody is
 * told, taken up by the run exactly once. Pure; who may decide and when is decided in verbs/answer-interaction.
 */
export function buildInteraction(
  ask: InteractionDraft,
  call: InteractionCall,
  run: InteractionRun,
  now: number,
  digester: Digester,
): Interaction {
  return {
    id: deriveInteractionId(ask, call, run, digester),
    runId: run.id,
    sessionId: run.sessionId,
    agent: run.agent,
    version: run.version,
    actor: run.actor,
    kind: ask.kind,
    status: 'pending',
    operationKey: call.key,
    ordinal: ask.ordinal,
    callId: call.callId,
    tool: call.name,
    arguments: ask.arguments,
    digest: interactionDigest(ask, call, run, digester),
    reason: ask.reason,
    risk: ask.risk,
    approverRole: ask.approverRole,
    questions: ask.questions,
    decision: null,
    createdAt: now,
    expiresAt: ask.expiresInMs === null ? null : now + ask.expiresInMs,
    decidedAt: null,
  };
}

export function requestedEntry(asked: Interaction, at: number): JournalEntry {
  const { id, operationKey, tool, kind, digest, expiresAt, approverRole } = asked;
  return {
    type: 'interaction.requested',
    at,
    interactionId: id,
    key: operationKey,
    ...(tool !== null && { tool }),
    kind,
    digest,
    expiresAt,
    ...(approverRole !== null && { approverRole }),
  };
}

/** The refusal that an ask nobody decided in time amounts to. */
export function expiryDecision(kind: Interaction['kind']): InteractionDecision {
  const note = 'Nobody decided in time.';
  return kind === 'approval' ? { decision: 'deny', by: 'system', note } : { action: 'cancel', by: 'system', note };
}

export function statusOfDecision(decision: InteractionDecision): InteractionStatus {
  if ('decision' in decision) return decision.decision === 'approve' ? 'approved' : 'denied';
  return decision.action === 'accept' ? 'answered' : 'declined';
}

/** The entry by which a run takes a decision up; the fold needs nothing else. */
export function decidedEntry(asked: Interaction, at: number): EntryOf<'interaction.answered' | 'interaction.expired'> {
  return {
    type: asked.status === 'expired' ? 'interaction.expired' : 'interaction.answered',
    at,
    interactionId: asked.id,
    key: asked.operationKey,
    ...(asked.tool !== null && { tool: asked.tool }),
    decision: asked.decision as InteractionDecision,
  };
}

/** Whether a decision gives its call a result at once, rather than letting its method be entered. */
export function finishesCall(asked: Interaction, isFromMethod: boolean): boolean {
  if (isFromMethod || !asked.decision) return false;
  return asked.kind === 'question' || ('decision' in asked.decision && asked.decision.decision === 'deny');
}

/**
 * Decisions that were made while the run was executed, for its owner to take up (architecture, "Who may append"): as
 * many as one commit takes.
 */
export function decisionsToTakeUp(
  locked: LockedRun,
  state: RunState,
  fits: (entries: readonly JournalEntry[]) => number,
): { entries: JournalEntry[]; results: number; interactions: Interaction[]; isWaitedFor: boolean } {
  const decided = locked.interactions.filter((asked) => asked.decision !== null && isAwaited(asked, state));
  const entries = decided.map((asked) => decidedEntry(asked, locked.now));
  const count = fits(entries);
  const taken = decided.slice(0, count);
  return {
    entries: entries.slice(0, count),
    results: taken.filter((asked) => finishesCall(asked, isMethodAsk(asked, state))).length,
    interactions: takenUp(taken),
    isWaitedFor: decided.length > 0,
  };
}

/** Approvals are spent once the run has taken them up. */
export function takenUp(interactions: readonly Interaction[]): Interaction[] {
  return interactions.filter(({ status }) => status === 'approved').map((asked) => ({ ...asked, status: 'used' }));
}

export function isMethodAsk(asked: Interaction, state: RunState): boolean {
  return state.calls.some((call) => call.methodInteractions.some(({ interactionId }) => interactionId === asked.id));
}

/** Whether the run, as far as its journal says, still waits for this ask. */
export function isAwaited(asked: Interaction, state: RunState): boolean {
  const call = state.calls.find(({ key }) => key === asked.operationKey);
  if (call?.status !== 'waiting') return false;
  const ask = call.methodInteractions.find(({ interactionId }) => interactionId === asked.id);
  return ask ? ask.decision === null : call.interactionId === asked.id;
}
