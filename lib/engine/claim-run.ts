import type { Offer } from '../contracts/agent-definition.js';
import type { JournalEntry } from '../contracts/journal-entry.js';
import type { UserMessage } from '../contracts/message.js';
import type { LockedRun, RunWrites, TransitionDecision, WorkerRecord } from '../contracts/ports/run-store.port.js';
import { backoff } from '../contracts/policies.js';
import type { ClaimCause, RunChange, WakeNote } from '../contracts/run.js';
import type { Attention } from '../contracts/run-status.js';
import type { EnginePorts } from './engine-ports.js';
import { isAwaited, takenUp } from './interactions.js';
import type { RunState } from './journal/run-state.js';
import { callAttention, changeStatus, NOTHING } from './transitions.js';
import { recordedText } from './values/recorded-error.js';

export interface ClaimOptions {
  workerId: string;
  maxRecoveries: number;
  /** Hash of the definition that will execute the run. */
  definitionHash: string;
  /** What the claimer has folded: intents may only join the claim when the journal has not moved since. */
  known: RunState;
  /** The note about earlier runs of the session, once, with the first claim. */
  note: UserMessage | null;
  /** Intents to commit with the claim, and the totals after them; empty when the first step needs more thought. */
  intents: JournalEntry[];
  totalsAfterIntents: LockedRun['run']['totals'];
}

export type ClaimResult =
  | { outcome: 'claimed'; withIntents: boolean; inboxWaiting: boolean }
  /** Somebody else was faster, or it is not due. */
  | { outcome: 'lost' }
  | { outcome: 'exhausted' };

/** Whether a run may be claimed now, by the store's clock. */
export function isClaimable({ run, lease, now }: Pick<LockedRun, 'run' | 'lease' | 'now'>): boolean {
  if (run.status === 'pending') return true;
  if (run.status === 'retry_wait') return (run.nextAttemptAt ?? 0) <= now;
  return run.status === 'running' && isExpired({ lease, now });
}

export function isExpired({ lease, now }: Pick<LockedRun, 'lease' | 'now'>): boolean {
  return (lease?.expiresAt ?? 0) <= now;
}

/** Claims after lost leases in a row, this one included, without a committed result in between. */
export function recoveriesAfter(locked: LockedRun): number {
  const { run } = locked;
  const progressed = run.totals.results > run.resultsAtClaim;
  if (run.status !== 'running') return progressed ? 0 : run.recoveries;
  return progressed ? 1 : run.recoveries + 1;
}

/**
 * The claim: one guarded write that makes a worker the owner of a run under a new attempt. Taking over from an expired
 * owner is the same claim. Pure decider; also the place where a run that keeps losing its owners is handed to a person
 * instead.
 */
export function decideClaim(locked: LockedRun, options: ClaimOptions): TransitionDecision<ClaimResult> {
  const { run, lease, now } = locked;
  if (!isClaimable(locked)) return { result: { outcome: 'lost' } };
  const expired = run.status === 'running';
  const lostLease: JournalEntry[] = expired
    ? [{ type: 'run.lease_expired', at: now, owner: run.owner ?? 'unknown', expiredAt: lease?.expiresAt ?? null }]
    : [];
  const recoveries = recoveriesAfter(locked);
  if (recoveries > options.maxRecoveries)
    return { result: { outcome: 'exhausted' }, ...exhausted(locked, options.maxRecoveries, lostLease) };

  const attempt = run.attempt + 1;
  const inboxWaiting = locked.inbox.some(({ status }) => status === 'queued');
  const isKnown = run.sequence === options.known.sequence;
  // Only the journal says which approvals are spent: the next poll decides again.
  if (!isKnown && locked.interactions.some(({ status }) => status === 'approved'))
    return { result: { outcome: 'lost' } };
  const withIntents = !expired && !inboxWaiting && isKnown && options.intents.length > 0;
  const entries: JournalEntry[] = [
    ...lostLease,
    ...(options.note && run.attempt === 0
      ? [{ type: 'history.effects', at: now, message: options.note } as const]
      : []),
    claimEntry(locked, attempt, options),
    ...(withIntents ? options.intents : []),
  ];
  const change: RunChange = {
    attempt,
    owner: options.workerId,
    wake: null,
    nextAttemptAt: null,
    claimedAt: now,
    startedAt: run.startedAt ?? now,
    recoveries,
    resultsAtClaim: run.totals.results,
    definitionHash: options.definitionHash,
    waitingFor: [],
    attention: null,
    activeMs: run.activeMs + activeTimeOfOwner(locked),
    ...captureHistory(locked),
  };
  return {
    result: { outcome: 'claimed', withIntents, inboxWaiting },
    run: {
      ...changeStatus(run, expired ? 'take_over' : 'claim', entries, change),
      ...(withIntents && { totals: options.totalsAfterIntents }),
    },
    // Not those that were decided while a lost owner executed the run: the journal does not have them yet.
    interactions: takenUp(locked.interactions.filter((asked) => !isAwaited(asked, options.known))),
  };
}

/**
 * A run that this worker owns and does not execute is put back: at once when the answer of its claim was lost. An
 * attempt that could not write how it ended counts as a lost owner, because the next one may end in the same way: it is
 * tried after a pause that doubles, and `maxRecoveries` times at most.
 */
export function decidePutBack(
  locked: LockedRun,
  { workerId, hasAttempted, maxRecoveries }: { workerId: string; hasAttempted: boolean; maxRecoveries: number },
): RunWrites {
  const { run, now } = locked;
  if (run.status !== 'running' || run.owner !== workerId) return NOTHING;
  const wake: WakeNote = { cause: 'handover', previousOwner: workerId };
  if (!hasAttempted) {
    const entries: JournalEntry[] = [{ type: 'run.handed_over', at: now, attempt: run.attempt }];
    return { run: changeStatus(run, 'hand_over', entries, { wake }) };
  }
  const recoveries = recoveriesAfter(locked);
  if (recoveries > maxRecoveries) return exhausted(locked, maxRecoveries);
  const delayMs = backoff(run.frozen.modelRetry, recoveries);
  const nextAttemptAt = now + delayMs;
  const entries: JournalEntry[] = [{ type: 'run.backing_off', at: now, key: null, nextAttemptAt, delayMs }];
  return {
    run: changeStatus(run, 'back_off', entries, {
      wake,
      nextAttemptAt,
      recoveries,
      resultsAtClaim: run.totals.results,
      activeMs: run.activeMs + activeTimeOfOwner(locked),
    }),
  };
}

/** A sweep's share of the claim: an expired run that used up its recoveries goes to a person. */
export function decideExhaustion(locked: LockedRun, maxRecoveries: number): RunWrites {
  if (locked.run.status !== 'running' || !isExpired(locked) || recoveriesAfter(locked) <= maxRecoveries) return NOTHING;
  return exhausted(locked, maxRecoveries);
}

function exhausted(locked: LockedRun, maxRecoveries: number, before: JournalEntry[] = []): RunWrites {
  const attention: Attention = {
    reason: 'recovery_exhausted',
    detail: recordedText(
      `The run lost its owner more than ${maxRecoveries} times without finishing an operation in between. Find out what ends the processes (memory? a crash in a tool?) or what they could not write (the log says it), then retry it.`,
    ),
  };
  const activeMs = locked.run.activeMs + activeTimeOfOwner(locked);
  return callAttention(locked, attention, { wake: null, activeMs }, before);
}

function claimEntry({ run, lease, now }: LockedRun, attempt: number, options: ClaimOptions): JournalEntry {
  const expired = run.status === 'running';
  const { cause: wakeCause = 'submitted', ...wake } = run.wake ?? {};
  const cause: ClaimCause = expired ? 'recovered' : run.status === 'retry_wait' ? 'backoff' : wakeCause;
  const unownedSince = expired ? (lease?.expiresAt ?? run.claimedAt ?? run.updatedAt) : run.updatedAt;
  return {
    type: run.attempt === 0 ? 'run.started' : 'run.resumed',
    at: now,
    attempt,
    cause,
    owner: options.workerId,
    unownedForMs: Math.max(0, now - unownedSince),
    ...(run.owner !== null && { previousOwner: run.owner }),
    ...wake,
    ...(run.definitionHash !== options.definitionHash && {
      definitionChange: { from: run.definitionHash, to: options.definitionHash },
    }),
  };
}

/**
 * Active time of an owner that the run is taken from: one that vanished was active up to the end of its lease at most.
 */
export function activeTimeOfOwner({ run, lease, now }: LockedRun): number {
  if (run.status !== 'running' || run.claimedAt === null) return 0;
  return Math.max(0, Math.min(now, lease?.expiresAt ?? run.claimedAt) - run.claimedAt);
}

/** Parallel runs take their history at their first claim; serial ones had it fixed at the head of their session. */
function captureHistory({ run, session }: LockedRun): RunChange {
  if (run.historyCaptured) return {};
  return { historyCaptured: true, historyRunId: session?.latestCompletedRunId ?? null };
}

/** What the live workers and this process execute: its own row may not be stored yet. */
export function offersOf(
  { options, catalog }: Pick<EnginePorts, 'options' | 'catalog'>,
  workers: readonly WorkerRecord[],
): Offer[] {
  const own = options.worker ? catalog.offers() : [];
  return [...workers.flatMap(({ offers }) => offers), ...own];
}
