import type { Interaction, InteractionDecision, InteractionStatus, Question } from '../contracts/interaction.js';
import type { EntryOf, JournalEntry } from '../contracts/journal-entry.js';
import type { JsonObject } from '../contracts/json.js';
import type { Digester } from '../contracts/ports/system.port.js';
import type { LockedRun } from '../contracts/ports/run-store.port.js';
import type { RunRecord } from '../contracts/run.js';
import type { CallState, RunState } from './journal/run-state.js';

/** What is interaction, before it has an id, a digest and a date. */
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

/** What of a call an interaction is bound to. */
export type InteractionCall = Pick<CallState, 'key' | 'callId' | 'name' | 'toolVersion'> &
  Partial<Pick<CallState, 'withdrawn'>>;
export type InteractionRun = Pick<RunRecord, 'id' | 'sessionId' | 'agent' | 'version' | 'actor'>;

/** An interaction with the call it is about. */
export interface CallInteraction {
  draft: InteractionDraft;
  call: CallState;
}

/** The interactions that calls wait for and that were not requested yet. */
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

/** The interaction that decides whether a call begins. */
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

/** What an interaction is bound to: a decision for one digest decides nothing else. */
export function interactionDigest(
  draft: InteractionDraft,
  call: InteractionCall,
  run: InteractionRun,
  digester: Digester,
): string {
  const bound = {
    run: run.id,
    key: call.key,
    ordinal: draft.ordinal,
    agent: `${run.agent}@${run.version}`,
    tool: `${call.name}@${call.toolVersion ?? ''}`,
    arguments: draft.arguments,
    questions: draft.questions,
  };
  return digester.digest(digester.canonical(bound));
}

/**
 * Derived from run, operation and ordinal, so that a repeated request is the same interaction. One that was withdrawn
 * stays so (I7): the next has an id of its own.
 */
export function deriveInteractionId(
  draft: InteractionDraft,
  call: InteractionCall,
  run: Pick<RunRecord, 'id'>,
  digester: Digester,
): string {
  const again = call.withdrawn ? `/${call.withdrawn}` : '';
  return `int_${digester.digest(`${run.id}/${call.key}/${draft.ordinal}${again}`).slice(0, 24)}`;
}

/** Whether it decides if its call begins, rather than being requested by the method. */
export function isApprovalGate({ ordinal }: Interaction): boolean {
  return ordinal === 0;
}

/**
 * An interaction of a run is built from the call as it will be executed and bound to its digest (I7), committed before
 * anybody is told, taken up by the run exactly once. Pure; who may decide and when is decided in
 * verbs/answer-interaction.
 */
export function buildInteraction(
  draft: InteractionDraft,
  call: InteractionCall,
  run: InteractionRun,
  now: number,
  digester: Digester,
): Interaction {
  const { expiresInMs, ...content } = draft;
  return {
    id: deriveInteractionId(draft, call, run, digester),
    runId: run.id,
    sessionId: run.sessionId,
    agent: run.agent,
    version: run.version,
    actor: run.actor,
    status: 'pending',
    operationKey: call.key,
    callId: call.callId,
    tool: call.name,
    ...content,
    digest: interactionDigest(draft, call, run, digester),
    decision: null,
    createdAt: now,
    expiresAt: expiresInMs === null ? null : now + expiresInMs,
    decidedAt: null,
  };
}

export function requestedEntry(interaction: Interaction, at: number): JournalEntry {
  const { id, operationKey, tool, kind, digest, expiresAt, approverRole } = interaction;
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

/** The refusal that an expired interaction amounts to. */
export function expiryDecision(kind: Interaction['kind']): InteractionDecision {
  const note = 'Nobody decided in time.';
  return kind === 'approval' ? { decision: 'deny', by: 'system', note } : { action: 'cancel', by: 'system', note };
}

export function statusOfDecision(decision: InteractionDecision): InteractionStatus {
  if ('decision' in decision) return decision.decision === 'approve' ? 'approved' : 'denied';
  return decision.action === 'accept' ? 'answered' : 'declined';
}

/** The entry by which a run takes a decision up; the fold needs nothing else. */
export function decidedEntry(
  interaction: Interaction,
  at: number,
): EntryOf<'interaction.answered' | 'interaction.expired'> {
  return {
    type: interaction.status === 'expired' ? 'interaction.expired' : 'interaction.answered',
    at,
    interactionId: interaction.id,
    key: interaction.operationKey,
    ...(interaction.tool !== null && { tool: interaction.tool }),
    decision: interaction.decision as InteractionDecision,
  };
}

/** Whether a decision gives its call a result at once, rather than letting its method be entered. */
export function finishesCall(interaction: Interaction, state: RunState): boolean {
  const isFromMethod = state.calls.some((call) =>
    call.methodInteractions.some(({ interactionId }) => interactionId === interaction.id),
  );
  if (isFromMethod || !interaction.decision) return false;
  return (
    interaction.kind === 'question' || ('decision' in interaction.decision && interaction.decision.decision === 'deny')
  );
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
  const decided = locked.interactions.filter(
    (interaction) => interaction.decision !== null && isAwaited(interaction, state),
  );
  const entries = decided.map((interaction) => decidedEntry(interaction, locked.now));
  const count = fits(entries);
  const taken = decided.slice(0, count);
  return {
    entries: entries.slice(0, count),
    results: taken.filter((interaction) => finishesCall(interaction, state)).length,
    interactions: takenUp(taken),
    isWaitedFor: decided.length > 0,
  };
}

/** Approvals are spent once the run has taken them up. */
export function takenUp(interactions: readonly Interaction[]): Interaction[] {
  return interactions
    .filter(({ status }) => status === 'approved')
    .map((interaction) => ({ ...interaction, status: 'used' }));
}

/** Whether the run, as far as its journal says, still waits for this interaction. */
export function isAwaited(interaction: Interaction, state: RunState): boolean {
  const call = state.calls.find(({ key }) => key === interaction.operationKey);
  if (call?.status !== 'waiting') return false;
  const own = call.methodInteractions.find(({ interactionId }) => interactionId === interaction.id);
  return own ? own.decision === null : call.interactionId === interaction.id;
}
