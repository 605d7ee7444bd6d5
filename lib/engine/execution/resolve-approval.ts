import {
  isText,
  optional,
  readAnswer,
  type ApprovalResolution,
  type ApprovalResolver,
} from '../../contracts/ports/host.port.js';
import type { InteractionDecision } from '../../contracts/interaction.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import {
  decidedEntry,
  interactionDigest,
  buildInteraction,
  requestedEntry,
  type InteractionDraft,
  type InteractionCall,
} from '../interactions.js';
import { timedCall } from '../timed-call.js';
import { thrownStack } from '../values/recorded-error.js';
import type { Attempt } from './attempt.js';

/** How long a resolver may take. */
const RESOLVER_TIMEOUT_MS = 5_000;

const AUTO_DENY: InteractionDecision = {
  decision: 'deny',
  by: 'system',
  note: 'It needs an approval, and this agent runs without people who could give it.',
};

/**
 * Decides an approval without a person: by the host's resolver, or because the agent runs without people. Called before
 * the step that would request the interaction, so that the call and its decision are one commit. A resolver that fails
 * decides nothing: a gate that fails must not open.
 * @returns the entries of the request and its decision; null when people must be asked
 */
export async function resolveApproval(
  attempt: Attempt,
  ask: InteractionDraft,
  call: InteractionCall,
): Promise<JournalEntry[] | null> {
  if (ask.kind !== 'approval') return null;
  const { ports, run, agent } = attempt;
  const decision = (await resolved(attempt, ask, call)) ?? (agent.approvalMode === 'fail' ? AUTO_DENY : null);
  if (!decision) return null;
  const at = ports.clock.now();
  const asked = buildInteraction(ask, call, run, at, ports.digester);
  return [requestedEntry(asked, at), decidedEntry({ ...asked, decision }, at)];
}

async function resolved(
  attempt: Attempt,
  ask: InteractionDraft,
  call: InteractionCall,
): Promise<InteractionDecision | null> {
  const { ports, run } = attempt;
  const { approvalResolver: resolver } = ports;
  if (!resolver) return null;
  const question: Parameters<ApprovalResolver['resolve']>[0] = {
    runId: run.id,
    sessionId: run.sessionId,
    agent: run.agent,
    version: run.version,
    tool: call.name,
    callId: call.callId,
    operationKey: call.key,
    arguments: structuredClone(ask.arguments ?? {}),
    digest: interactionDigest(ask, call, run, ports.digester),
    reason: ask.reason,
    risk: ask.risk,
    approverRole: ask.approverRole,
    actor: structuredClone(run.actor),
  };
  const answer = await timedCall({ ports, runId: run.id }, RESOLVER_TIMEOUT_MS, () => resolver.resolve(question));
  if (answer.ended === 'returned') {
    if (answer.value === null) return null;
    const decision = readResolution(answer.value);
    if (!decision) attempt.warn('the approval resolver gave no decision; a person is asked', call);
    return decision;
  }
  attempt.warn('the approval resolver failed; a person is asked', call, {
    code: answer.ended === 'threw' ? 'RESOLVER_FAILED' : 'RESOLVER_TIMED_OUT',
    ...(answer.ended === 'threw' && { stack: thrownStack(answer.error) }),
  });
  return null;
}

/** Nothing but the literal words is a decision. */
function readResolution(answer: unknown): InteractionDecision | null {
  const given = readAnswer<ApprovalResolution>(answer, {
    decision: (word) => word === 'approve' || word === 'deny',
    by: isText,
    note: optional((note) => typeof note === 'string'),
  });
  return given && { decision: given.decision, by: given.by, ...(given.note !== undefined && { note: given.note }) };
}
