/**
 * How a running attempt leaves the run: settled, waiting, backing off, needing attention or handed over. Pure deciders for the store's locked
 * transaction (I3, I4). Each is safe to repeat after a COMMIT whose answer was lost: it recognises its own work.
 */
import type { JournalEntry } from '../contracts/journal-entry.js';
import type { Interaction } from '../contracts/interaction.js';
import type { LockedRun, TransitionDecision } from '../contracts/ports/run-store.port.js';
import type { RunChange, RunTotals } from '../contracts/run.js';
import { isSettled } from '../contracts/run-status.js';
import { transitionOf, type RunVerb } from '../contracts/run-transitions.js';
import { BrokenStoreError } from '../errors/store/broken-store.error.js';
import { FencedError } from '../errors/store/fenced.error.js';
import { advanceSession } from './sessions.js';

/** What an attempt leaves with. */
export interface Leave {
  attempt: number;
  verb: RunVerb;
  /** Sequence of the last entry the attempt knows to be durable. */
  sequence: number;
  /** Results still to be recorded, then the transition's own entry; times may depend on the store's clock. */
  entries: (now: number) => JournalEntry[];
  totals: RunTotals;
  change: (now: number) => RunChange;
  interactions?: (now: number) => Interaction[];
  /** Not to be done earlier by the store's clock; absent = at any time. */
  notBefore?: number;
}

export interface LeaveResult {
  /** `already`: an earlier call, whose answer was lost, had done it. */
  outcome: 'left' | 'already' | 'too_early';
  entries: JournalEntry[];
}

export function decideLeave(locked: LockedRun, leave: Leave): TransitionDecision<LeaveResult> {
  const { run, now } = locked;
  const target = transitionOf('running', leave.verb)?.to;
  const entries = leave.entries(now);
  if (run.attempt === leave.attempt && run.status === target && run.sequence === leave.sequence + entries.length)
    return { result: { outcome: 'already', entries } };
  if (run.attempt !== leave.attempt || run.status !== 'running' || target === undefined) {
    throw new FencedError(
      `Attempt ${leave.attempt} no longer owns run ${run.id}: it is ${run.status}, attempt ${run.attempt}.`,
      { details: { runId: run.id, attempt: leave.attempt } },
    );
  }
  if (run.sequence !== leave.sequence) {
    throw new BrokenStoreError(
      `Run ${run.id} has sequence ${run.sequence} in the store, but its owner wrote ${leave.sequence}.`,
      { details: { runId: run.id } },
    );
  }
  if (leave.notBefore !== undefined && now < leave.notBefore) return { result: { outcome: 'too_early', entries: [] } };
  const change: RunChange = {
    ...leave.change(now),
    status: target,
    activeMs: run.activeMs + Math.max(0, now - (run.claimedAt ?? now)),
  };
  const interactions = leave.interactions?.(now);
  return {
    result: { outcome: 'left', entries },
    ...(isSettled(target)
      ? settlement(locked, change, entries, leave.totals)
      : { run: { change, entries, totals: leave.totals }, ...(interactions && { interactions }) }),
  };
}

/** The writes that settle a run: its asks are withdrawn and its session goes on. */
export function settlement(
  locked: LockedRun,
  change: RunChange,
  entries: JournalEntry[],
  totals?: RunTotals,
): Pick<TransitionDecision<never>, 'run' | 'session' | 'nextInSession' | 'interactions' | 'inbox'> {
  const { now, session } = locked;
  const completed = change.status === 'completed';
  return {
    run: {
      change: {
        ...change,
        waitingFor: [],
        attention: null,
        wake: null,
        nextAttemptAt: null,
        interruptRequestedAt: null,
        finishedAt: now,
        ...(completed && session && { precedingRunId: session.latestCompletedRunId }),
      },
      entries,
      ...(totals && { totals }),
    },
    ...advanceSession(locked, completed),
    interactions: locked.interactions
      .filter((interaction) => interaction.status === 'pending')
      .map((interaction) => ({ ...interaction, status: 'cancelled', decidedAt: now })),
    inbox: locked.inbox.map((message) => ({ ...message, status: 'withdrawn' })),
  };
}
