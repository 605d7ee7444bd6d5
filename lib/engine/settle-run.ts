/**
 * How a running attempt leaves the run: settled, waiting, backing off, needing attention or handed over. Pure deciders for the store's locked
 * transaction (I3, I4). Each is safe to repeat after a COMMIT whose answer was lost: it recognises its own work.
 */
import type { JournalEntry } from '../contracts/journal-entry.js';
import type { InboxMessage, Interaction } from '../contracts/interaction.js';
import type { LockedRun, TransitionDecision } from '../contracts/ports/run-store.port.js';
import type { RunChange, RunRecord, RunTotals } from '../contracts/run.js';
import { isSettled, type RunStatus } from '../contracts/run-status.js';
import { transitionOf, type RunVerb } from '../contracts/run-transitions.js';
import { BrokenStoreError } from '../errors/store/broken-store.error.js';
import { FencedError } from '../errors/store/fenced.error.js';
import { advanceSession } from './sessions.js';
import { countThatFits } from './values/commit-size.js';

/** What an attempt writes in a transaction of its own: it leaves, or it stays and writes what an append cannot. */
export interface Leave {
  attempt: number;
  /** Null: the run stays with its owner. */
  verb: RunVerb | null;
  /** Sequence of the last entry the attempt knows to be durable. */
  sequence: number;
  /** Results still to be recorded. */
  results: JournalEntry[];
  /** What follows them; times come from the store's clock. */
  entries: (now: number) => JournalEntry[];
  /** After results and entries. */
  totals: RunTotals;
  change: (now: number) => RunChange;
  /** What is owed to the journal about a stop that somebody wants; told with every transaction. */
  owed?: (run: RunRecord) => JournalEntry[];
  interactions?: (now: number) => Interaction[];
  /** Not to be done earlier by the store's clock; absent = at any time. */
  notBefore?: number;
  /**
   * What somebody else wrote that makes the run go on instead; read under its lock, so that nothing is missed.
   * @param fits how many of these entries, in order, the commit takes; the rest is for the next one
   */
  instead?: (locked: LockedRun, fits: (entries: readonly JournalEntry[]) => number) => Stay | null;
  /** See `StoreTraits`. */
  maxCommitBytes?: number | undefined;
}

/** What lets a run stay that was about to leave. */
export interface Stay {
  entries: JournalEntry[];
  /** How many of the entries are results. */
  results: number;
  /** Messages are left in the inbox for the next commit. */
  leavesMessages?: boolean;
  interactions?: Interaction[];
  inbox?: InboxMessage[];
}

export interface LeaveResult {
  /** `already`: an earlier try, whose answer was lost, had done it. */
  outcome: 'left' | 'stayed' | 'already' | 'too_early';
  /** Everything appended, results first. */
  entries: JournalEntry[];
  /** The part of `entries` that the attempt did not know of. */
  news: JournalEntry[];
  leavesMessages?: boolean;
}

export function decideLeave(locked: LockedRun, leave: Leave): TransitionDecision<LeaveResult> {
  const { run, now } = locked;
  const target = leave.verb === null ? 'running' : transitionOf('running', leave.verb)?.to;
  const owed = leave.owed?.(run) ?? [];
  const entries = [...leave.results, ...owed, ...leave.entries(now)];
  if (run.attempt === leave.attempt && isOwnWork(locked, leave, target, entries.length)) {
    return { result: { outcome: 'already', entries, news: [] } };
  }
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
  if (leave.notBefore !== undefined && now < leave.notBefore)
    return { result: { outcome: 'too_early', entries: [], news: [] } };
  const stay = leave.instead?.(locked, (given) => countThatFits(given, leave.results, leave.maxCommitBytes));
  if (stay) return staying(leave, stay);
  const interactions = leave.interactions?.(now);
  const interrupt: RunChange =
    run.interruptRequest && owed.length > 0 ? { interruptRequest: { ...run.interruptRequest, journaled: true } } : {};
  if (leave.verb === null) {
    if (entries.length === 0) return { result: { outcome: 'stayed', entries, news: [] } };
    return {
      result: { outcome: 'stayed', entries, news: [] },
      run: { change: interrupt, entries, totals: leave.totals },
      ...(interactions && { interactions }),
    };
  }
  const change: RunChange = {
    ...leave.change(now),
    ...interrupt,
    status: target,
    // A run that comes back by itself is still to be stopped; one that a person has to start again has stopped.
    ...((target === 'interrupted' || target === 'needs_attention') && { interruptRequest: null }),
    activeMs: run.activeMs + Math.max(0, now - (run.claimedAt ?? now)),
  };
  return {
    result: { outcome: 'left', entries, news: [] },
    ...(isSettled(target)
      ? settlement(locked, change, entries, leave.totals)
      : { run: { change, entries, totals: leave.totals }, ...(interactions && { interactions }) }),
  };
}

/** A run that is still ours and ahead of what we know can only have been moved by an earlier try of this very transaction. */
function isOwnWork({ run }: LockedRun, leave: Leave, target: RunStatus | undefined, added: number): boolean {
  if (run.status === 'running')
    return (leave.verb === null || leave.instead !== undefined) && run.sequence > leave.sequence;
  return run.status === target && run.sequence === leave.sequence + added;
}

function staying(leave: Leave, stay: Stay): TransitionDecision<LeaveResult> {
  const entries = [...leave.results, ...stay.entries];
  // Looked, and found nothing: no commit.
  if (entries.length === 0 && !stay.interactions?.length && !stay.inbox?.length)
    return { result: { outcome: 'stayed', entries, news: [] } };
  return {
    result: { outcome: 'stayed', entries, news: stay.entries, leavesMessages: stay.leavesMessages === true },
    run: { change: {}, entries, totals: { ...leave.totals, results: leave.totals.results + stay.results } },
    ...(stay.interactions && { interactions: stay.interactions }),
    ...(stay.inbox && { inbox: stay.inbox }),
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
  // A failed run may be retried, and still owes them an ear.
  const inbox = change.status === 'failed' ? [] : withdrawInbox(locked, entries);
  return {
    run: {
      change: {
        ...change,
        waitingFor: [],
        attention: null,
        wake: null,
        nextAttemptAt: null,
        interruptRequest: null,
        finishedAt: now,
        ...(completed && session && { precedingRunId: session.latestCompletedRunId }),
      },
      entries,
      ...(totals && { totals }),
    },
    ...advanceSession(locked, completed),
    // An approval that was never spent goes too: nothing was done by it, and nothing will be.
    interactions: locked.interactions
      .filter(({ status }) => status === 'pending' || status === 'approved')
      .map((asked) => ({ ...asked, status: 'cancelled', decidedAt: asked.decidedAt ?? now })),
    inbox,
  };
}

/** Messages that will never be delivered; the last of the entries, which ends the run or its part, names them. */
export function withdrawInbox({ inbox }: LockedRun, entries: JournalEntry[]): InboxMessage[] {
  const queued = inbox.filter(({ status }) => status === 'queued');
  const closing = entries.at(-1);
  // In the entry itself: one of its own would make the transaction's length depend on the inbox, by which it knows itself again.
  if (closing && queued.length > 0) Object.assign(closing, { withdrawn: queued.map(({ requestId }) => requestId) });
  return queued.map((message) => ({ ...message, status: 'withdrawn' }));
}
