import type { InboxMessage } from '../../contracts/interaction.js';
import type { EntryOf, JournalEntry } from '../../contracts/journal-entry.js';
import type { LockedRun, RunWrites } from '../../contracts/ports/run-store.port.js';
import type { CallerNote } from '../../contracts/run-requests.js';
import { isSettled } from '../../contracts/run-status.js';
import type { RunChange, WakeNote } from '../../contracts/run.js';
import type { Given } from '../../contracts/schema.js';
import {
  IllegalTransitionError,
  InvalidAnswerError,
  OpenInteractionsError,
  OperationConflictError,
  RequestConflictError,
  RunLeasedError,
} from '../../errors/request.errors.js';
import { activeTimeOfOwner, isExpired } from '../claim-run.js';
import type { EnginePorts } from '../engine-ports.js';
import type { RunState } from '../journal/run-state.js';
import type { RESUME } from '../requests/request-schemas.js';
import { becomePending, changeStatus, NOTHING, requireVerb } from '../transitions.js';
import { hasBudgetLeft, stillWaiting } from './waiting-runs.js';

/** The owner takes it up; a second request changes nothing. */
export function noteInterrupt({ run, now }: LockedRun, note: CallerNote): RunWrites {
  if (run.interruptRequest) return NOTHING;
  return { run: { change: { interruptRequest: { at: now, ...note, journaled: false } }, entries: [] } };
}

export function decideResume(locked: LockedRun, given: Given<typeof RESUME.fields>): RunWrites {
  const { budget, allowRunningTakeover, confirmation, wait: _wait, ...note } = given;
  const maxTotalTokens = budget?.maxTotalTokens ?? null;
  const takeover = allowRunningTakeover ? confirmation : undefined;
  const { run, now, lease } = locked;
  const change: RunChange = {
    // Whoever says go takes an earlier stop back.
    interruptRequest: null,
    ...(maxTotalTokens !== null && { budgetMaxTotalTokens: maxTotalTokens }),
  };
  const replaced = maxTotalTokens === null ? [] : [limitReplaced(locked, maxTotalTokens, note)];
  if (run.status === 'running') {
    if (isExpired(locked)) return keepLimit(locked, maxTotalTokens, note);
    const leaseRemainingMs = (lease?.expiresAt ?? now) - now;
    if (!takeover) {
      const details = { owner: run.owner, expiresAt: new Date(lease?.expiresAt ?? now) };
      throw new RunLeasedError(
        `Run ${run.id} is owned by ${run.owner} for another ${leaseRemainingMs} ms. Wait, or, where takeover is allowed, take it with allowRunningTakeover and a confirmation that the owner is gone.`,
        { details },
      );
    }
    const entries: JournalEntry[] = [
      ...replaced,
      { type: 'run.takeover_requested', at: now, ...takeover, leaseRemainingMs },
    ];
    const wake: WakeNote = {
      cause: 'takeover',
      ...takeover,
      leaseRemainingMs,
      ...(run.owner !== null && { previousOwner: run.owner }),
    };
    const activeMs = run.activeMs + activeTimeOfOwner(locked);
    return { run: changeStatus(run, 'seize', entries, { ...change, wake, activeMs }) };
  }
  if (run.status === 'pending' || run.status === 'retry_wait') return keepLimit(locked, maxTotalTokens, note);
  requireVerb(run, 'resume');
  if (maxTotalTokens !== null && run.waitingFor.includes('budget')) return decideNewLimit(locked, maxTotalTokens, note);
  const open = locked.interactions.filter(({ status }) => status === 'pending');
  if (open.length > 0)
    throw new OpenInteractionsError(
      `Run ${run.id} waits for ${open.length} open decisions: ${open.map(({ id }) => id).join(', ')}.`,
      { details: { interactions: open.map(({ id }) => id) } },
    );
  if (run.waitingFor.includes('budget') && !hasBudgetLeft(run, run.budgetMaxTotalTokens)) return NOTHING;
  const entries: JournalEntry[] = [...replaced, { type: 'run.resume_requested', at: now, ...note }];
  return becomePending(locked, 'resume', { cause: 'resumed', ...note }, entries, change);
}

/**
 * An active run without an owner is left to its next claim, but a limit that comes with the request holds at once.
 */
function keepLimit(locked: LockedRun, maxTotalTokens: number | null, note: CallerNote): RunWrites {
  if (maxTotalTokens === null) return NOTHING;
  const change = { budgetMaxTotalTokens: maxTotalTokens };
  // An owner whose lease has run out may still be writing: the journal is not ours.
  const entries = locked.run.status === 'running' ? [] : [limitReplaced(locked, maxTotalTokens, note)];
  return { run: { change, entries } };
}

function limitReplaced({ run, now }: LockedRun, maxTotalTokens: number, { by }: CallerNote): JournalEntry {
  const consumed = run.totals.usage.totalTokens;
  return { type: 'budget.limit_replaced', at: now, maxTotalTokens, consumed, ...(by !== undefined && { by }) };
}

/**
 * The given limit replaces the stored one at once; without anything left the run keeps waiting.
 */
function decideNewLimit(locked: LockedRun, maxTotalTokens: number, note: CallerNote): RunWrites {
  const { run, now } = locked;
  const replaced = limitReplaced(locked, maxTotalTokens, note);
  const change = { budgetMaxTotalTokens: maxTotalTokens, interruptRequest: null };
  if (!hasBudgetLeft(run, maxTotalTokens)) return { run: { change, entries: [replaced] } };
  const resumed: JournalEntry[] = [replaced, { type: 'run.resume_requested', at: now, ...note }];
  return (
    stillWaiting(locked, 'budget', [replaced], change) ??
    becomePending(locked, 'resume', { cause: 'budget', ...note }, resumed, change)
  );
}

export function decideResolution(
  locked: LockedRun,
  state: RunState,
  resolved: Omit<EntryOf<'tool.resolved'>, 'at'>,
  problems: readonly string[],
): RunWrites {
  const { run, now } = locked;
  requireVerb(run, 'resolve');
  const blocked = state.calls.filter(({ status }) => status === 'uncertain');
  if (!blocked.some(({ key }) => key === resolved.key)) {
    const keys = blocked.map(({ key }) => key);
    throw new OperationConflictError(
      `Operation ${resolved.key} of run ${run.id} is not one that waits to be resolved. Those are: ${keys.join(', ') || 'none'}.`,
      { details: { operations: keys } },
    );
  }
  if (problems.length > 0)
    throw new InvalidAnswerError(`The output does not fit the tool's output schema: ${problems.join('; ')}.`, {
      details: { problems },
    });
  const tool = blocked.find(({ key }) => key === resolved.key)?.name;
  const entry: JournalEntry = { ...resolved, at: now, ...(tool !== undefined && { tool }) };
  const left = blocked.filter(({ key }) => key !== resolved.key).map(({ key }) => key);
  const totals =
    'notHappened' in resolved.resolution ? {} : { totals: { ...run.totals, results: run.totals.results + 1 } };
  if (left.length === 0) {
    const resumed = becomePending(locked, 'resolve', { cause: 'resolved', by: resolved.by }, [entry]);
    return { run: { ...resumed.run, ...totals } };
  }
  const attention = run.attention && { ...run.attention, operationKey: left[0] as string, operations: left };
  return { run: { change: { attention }, entries: [entry], ...totals } };
}

/**
 * A message into an open run's durable inbox; refused once the run is settled, because the same lock orders it against
 * the settling.
 */
export function decideSteering(
  locked: LockedRun,
  given: Pick<InboxMessage, 'requestId' | 'sender' | 'message'>,
  { digester }: Pick<EnginePorts, 'digester'>,
): RunWrites {
  const { run, now } = locked;
  const [before] = locked.inbox;
  if (before?.status === 'withdrawn')
    throw new IllegalTransitionError(
      `Message ${given.requestId} was withdrawn when run ${run.id} ended, and was never delivered. Send it again under a new request id.`,
      { details: { runId: run.id, status: run.status, verb: 'steer' } },
    );
  if (before) {
    if (digester.isSame(before.message, given.message)) return NOTHING;
    throw new RequestConflictError(`Request id ${given.requestId} was used for another message to run ${run.id}.`, {
      details: { runId: run.id },
    });
  }
  if (isSettled(run.status)) {
    throw new IllegalTransitionError(`Run ${run.id} is ${run.status}: it takes no more messages.`, {
      details: { runId: run.id, status: run.status, verb: 'steer' },
    });
  }
  const order = locked.lastMessageOrder + 1;
  return { inbox: [{ ...given, runId: run.id, order, status: 'queued', createdAt: now }] };
}
