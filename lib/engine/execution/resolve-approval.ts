/**
 * Approvals that no person is asked for: a resolver of the host decides in the moment, or the agent runs without people. Asked before the step that
 * would list the ask, so that the call and its decision are one commit. A resolver that fails decides nothing: a gate that fails must not open.
 */
import type { AgentDefinition } from '../../contracts/agent-definition.js';
import { isText, optional, readAnswer } from '../../contracts/host-answer.js';
import type { InteractionDecision } from '../../contracts/interaction.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { ApprovalResolution, ApprovalResolver } from '../../contracts/ports/approval-resolver.port.js';
import type { RunRecord } from '../../contracts/run.js';
import type { EnginePorts } from '../engine-ports.js';
import {
  decidedEntry,
  buildInteraction,
  requestedEntry,
  type InteractionDraft,
  type InteractionCall,
  type InteractionRun,
} from '../interactions.js';
import { thrownStack } from '../values/thrown-stack.js';
import { timedCall } from './timed-call.js';

/** How long a resolver may take. */
const RESOLVER_TIMEOUT_MS = 5_000;

export type DecisionPorts = Pick<EnginePorts, 'clock' | 'digester' | 'log' | 'approvalResolver' | 'scope'>;

/** The entries of an approval that is asked for and decided at once; null when people must be asked. */
export async function resolveApproval(
  ports: DecisionPorts,
  agent: Pick<AgentDefinition, 'approvalMode'>,
  run: InteractionRun & Pick<RunRecord, 'actor'>,
  ask: InteractionDraft,
  call: InteractionCall,
): Promise<JournalEntry[] | null> {
  if (ask.kind !== 'approval') return null;
  const decision = (await resolved(ports, run, ask, call)) ?? (agent.approvalMode === 'fail' ? AUTO_DENY : null);
  if (!decision) return null;
  const at = ports.clock.now();
  const asked = buildInteraction(ask, call, run, at, ports.digester);
  return [requestedEntry(asked, at), decidedEntry({ ...asked, decision }, at)];
}

const AUTO_DENY: InteractionDecision = {
  decision: 'deny',
  by: 'system',
  note: 'It needs an approval, and this agent runs without people who could give it.',
};

async function resolved(
  ports: DecisionPorts,
  run: InteractionRun & Pick<RunRecord, 'actor'>,
  ask: InteractionDraft,
  call: InteractionCall,
): Promise<InteractionDecision | null> {
  const { approvalResolver: resolver } = ports;
  if (!resolver) return null;
  const asked = buildInteraction(ask, call, run, ports.clock.now(), ports.digester);
  const question: Parameters<ApprovalResolver['resolve']>[0] = {
    runId: run.id,
    sessionId: run.sessionId,
    agent: run.agent,
    version: run.version,
    tool: call.name,
    callId: call.callId,
    operationKey: call.key,
    arguments: structuredClone(ask.arguments ?? {}),
    digest: asked.digest,
    reason: ask.reason,
    risk: ask.risk,
    approverRole: ask.approverRole,
    actor: structuredClone(run.actor),
  };
  const fields = { runId: run.id, operation: call.key, tool: call.name };
  const answer = await timedCall({ ports, runId: run.id }, RESOLVER_TIMEOUT_MS, new AbortController(), async () =>
    resolver.resolve(question),
  );
  if (answer.ended === 'returned') {
    if (answer.value === null) return null;
    const decision = readResolution(answer.value);
    if (!decision) ports.log.warn('the approval resolver gave no decision; a person is asked', fields);
    return decision;
  }
  ports.log.warn('the approval resolver failed; a person is asked', {
    ...fields,
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
