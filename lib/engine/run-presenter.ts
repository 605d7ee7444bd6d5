/** Stored runs as callers see them: absent instead of null, points in time as `Date`s. */
import type { Interaction } from '../contracts/interaction.js';
import type { Operation } from '../contracts/operation.js';
import type { LeaseView } from '../contracts/ports/run-store.port.js';
import { isSettled, phaseOf, type RunStatus } from '../contracts/run-status.js';
import type { RunRecord, RunSummary } from '../contracts/run.js';
import type { InteractionView, OperationView, PreviousGeneration, Run, RunSummaryView } from '../contracts/run-view.js';
import type { PastGeneration, RunState } from './journal/run-state.js';

export function presentRun(
  run: RunRecord,
  lease: LeaseView | null,
  interactions: readonly Interaction[],
  previous: readonly PastGeneration[] = [],
): Run {
  return {
    ...presentSummary(run),
    ...(run.requestScope.startsWith('run:') ? {} : { requestId: run.requestId }),
    ...(run.budgetMaxTotalTokens !== null && { budget: { maxTotalTokens: run.budgetMaxTotalTokens } }),
    ...(run.output !== null && { output: run.output }),
    ...(run.error && { error: run.error }),
    interactions: interactions.map(presentInteraction),
    definitionHash: run.definitionHash,
    contractVersion: run.contractVersion,
    restarts: run.restarts,
    previousGenerations: previous.map(presentGeneration),
    recoveries: run.recoveries,
    ...(run.deadlineAt !== null && { deadline: new Date(run.deadlineAt) }),
    ...(lease && {
      lease: {
        owner: lease.owner,
        ...(lease.heartbeatAt !== null && { heartbeatAt: new Date(lease.heartbeatAt) }),
        ...(lease.expiresAt !== null && { expiresAt: new Date(lease.expiresAt) }),
      },
    }),
  };
}

export function presentSummary(run: RunSummary): RunSummaryView {
  return {
    id: run.id,
    agent: run.agent,
    version: run.version,
    status: run.status,
    phase: phaseOf(run.status),
    ...(run.waitingFor.length > 0 && { waitingFor: run.waitingFor }),
    ...(run.attention && { attention: run.attention }),
    ...(run.sessionId !== null && { sessionId: run.sessionId }),
    ...(run.actor && { actor: run.actor }),
    attempt: run.attempt,
    sequence: run.sequence,
    turn: run.totals.turn,
    usage: run.totals.usage,
    ...(Object.keys(run.metadata).length > 0 && { metadata: run.metadata }),
    ...(run.nextAttemptAt !== null && { nextAttemptAt: new Date(run.nextAttemptAt) }),
    createdAt: new Date(run.createdAt),
    updatedAt: new Date(run.updatedAt),
    ...(run.startedAt !== null && { startedAt: new Date(run.startedAt) }),
    ...(run.finishedAt !== null && { finishedAt: new Date(run.finishedAt) }),
  };
}

function presentGeneration({
  status,
  output,
  error,
  turns,
  usage,
  startedAt,
  finishedAt,
}: PastGeneration): PreviousGeneration {
  return {
    status,
    ...(output !== null && { output }),
    ...(error && { error }),
    turns,
    usage,
    ...(startedAt !== null && { startedAt: new Date(startedAt) }),
    ...(finishedAt !== null && { finishedAt: new Date(finishedAt) }),
  };
}

export function presentInteraction({ createdAt, expiresAt, decidedAt, ...rest }: Interaction): InteractionView {
  return {
    ...rest,
    createdAt: new Date(createdAt),
    ...(expiresAt !== null && { expiresAt: new Date(expiresAt) }),
    ...(decidedAt !== null && { decidedAt: new Date(decidedAt) }),
  };
}

/** What a settled run left begun is shown as cut, not as still going on. */
export function presentOperations(run: RunRecord, state: RunState): OperationView[] {
  const settled = isSettled(run.status);
  return [...state.operations.values()].map(({ startedAt, finishedAt, ...operation }): OperationView => ({
    ...operation,
    ...(startedAt !== null && { startedAt: new Date(startedAt) }),
    ...(finishedAt !== null && { finishedAt: new Date(finishedAt) }),
    ...(settled && interruptedBySettling(operation, run.status)),
  }));
}

function interruptedBySettling(
  { kind, status }: Pick<Operation, 'kind' | 'status'>,
  ending: RunStatus,
): Partial<OperationView> {
  if (status === 'waiting') return { status: 'not_run' };
  if (status !== 'started') return {};
  return kind === 'model'
    ? { status: 'cancelled' }
    : { status: 'uncertain', interruptedBy: ending === 'timed_out' ? 'timeout' : 'cancel' };
}
