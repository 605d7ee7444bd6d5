import { IllegalTransitionError } from '../errors/request.errors.js';
import { BrokenStoreError, FencedError, SequenceConflictError, StoreConflictError } from '../errors/store.errors.js';
import type { InboxMessage, Interaction } from './interaction.js';
import type { AppendRequest } from './ports/run-store.port.js';
import type { RunChange, RunRecord } from './run.js';
import { respectsSettled } from './run-transitions.js';

/** I4: @throws IllegalTransitionError for a change that {@link respectsSettled} forbids */
export function requireSettledStays(run: Pick<RunRecord, 'id' | 'status' | 'restarts'>, change: RunChange): void {
  if (respectsSettled(run, change)) return;
  throw new IllegalTransitionError(
    `Run ${run.id} is ${run.status}, which is settled: it cannot become ${change.status}. Only a retry of a failed run or a restart leads on, to pending.`,
    { details: { runId: run.id, from: run.status, to: change.status } },
  );
}

/** Whether a run is finished with an interaction: a decider is no longer shown it. */
export function isSpent({ status }: Pick<Interaction, 'status'>): boolean {
  return status === 'used' || status === 'cancelled';
}

/**
 * I7: a decision binds once. A pending interaction may become anything; a decided one may only be used up or withdrawn,
 * with its digest and decision unchanged.
 * @throws StoreConflictError
 */
export function requireReplaceable(stored: Interaction, given: Interaction): void {
  const isSameDecision =
    stored.digest === given.digest && JSON.stringify(stored.decision) === JSON.stringify(given.decision);
  if (stored.status === 'pending' || (!isSpent(stored) && isSpent(given) && isSameDecision)) return;
  throw new StoreConflictError(
    `Interaction ${stored.id} is ${stored.status} already and cannot become ${given.status}.`,
    { details: { runId: stored.runId, interactionId: stored.id, status: stored.status } },
  );
}

/** A message is replaced only while it is queued. @throws StoreConflictError */
export function requireQueued({
  runId,
  requestId,
  status,
}: Pick<InboxMessage, 'runId' | 'requestId' | 'status'>): void {
  if (status === 'queued') return;
  throw new StoreConflictError(`The message with request id ${requestId} to run ${runId} is ${status} already.`, {
    details: { runId, requestId, status },
  });
}

/** I3: whether the attempt owns the run. */
export function isOwnedBy(run: Pick<RunRecord, 'status' | 'attempt'> | null | undefined, attempt: number): boolean {
  return run?.status === 'running' && run.attempt === attempt;
}

/**
 * I3: @throws FencedError unless the attempt owns the run
 * @param run null: there is no such run
 */
export function requireOwned<R extends Pick<RunRecord, 'status' | 'attempt'>>(
  { runId, attempt }: Pick<AppendRequest, 'runId' | 'attempt'>,
  run: R | null | undefined,
): asserts run is R {
  if (isOwnedBy(run, attempt)) return;
  const found = run ? `it is ${run.status} with attempt ${run.attempt}` : 'there is no such run';
  throw new FencedError(`Attempt ${attempt} no longer owns run ${runId}: ${found}. Its worker must stop the run.`, {
    details: { runId, attempt },
  });
}

/** @param sequence where the journal stands */
export function misplacedAppend(
  { runId, firstSequence }: Pick<AppendRequest, 'runId' | 'firstSequence'>,
  count: number,
  sequence: number,
): SequenceConflictError {
  return new SequenceConflictError(
    `Run ${runId} stands at sequence ${sequence}; ${count} entries from ${firstSequence} on are neither its next ones nor a repetition.`,
    { details: { runId, sequence, firstSequence } },
  );
}

/** @param existing the run that has the id or the request */
export function takenRun(
  run: Pick<RunRecord, 'id' | 'requestScope' | 'requestId'>,
  existing: Pick<RunRecord, 'id'>,
): StoreConflictError {
  return new StoreConflictError(
    `Run ${run.id} was not created: run ${existing.id} has this id or this request (${run.requestScope}, ${run.requestId}) already. Return or refuse it instead.`,
    { details: { runId: run.id, existing: existing.id } },
  );
}

/** @param subject what a decision changes without having been shown it */
export function unlockedChange(subject: 'a session' | 'a next run of the session'): BrokenStoreError {
  return new BrokenStoreError(
    `A decision changes ${subject} that was not shown to it. Ask for \`session: true\` and change only what is there.`,
  );
}
