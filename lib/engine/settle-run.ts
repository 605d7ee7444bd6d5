import type { JournalEntry, RecordedError } from '../contracts/journal-entry.js';
import type { InboxMessage, Interaction } from '../contracts/interaction.js';
import type { LockedRun, RunWrites, TransitionDecision } from '../contracts/ports/run-store.port.js';
import type { RunChange, RunRecord, RunTotals } from '../contracts/run.js';
import { isSettled, type RunStatus } from '../contracts/run-status.js';
import { requireOwned } from '../contracts/store-rules.js';
import type { RunVerb } from '../contracts/run-transitions.js';
import { BrokenStoreError } from '../errors/store.errors.js';
import { advanceSession } from './sessions.js';
import { changeStatus, requireVerb } from './transitions.js';
import { countThatFits } from './values/json-domain.js';
import { recordedFailure } from './values/recorded-error.js';

/** What an attempt writes in a transaction of its own: it leaves, or it stays and writes what an append cannot. */
export interface ExitTransition {
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
  /** The entry about a requested interrupt that the journal still lacks; written with every transaction. */
  pendingInterruptEntries?: (run: RunRecord) => JournalEntry[];
  interactions?: (now: number) => Interaction[];
  /** Not to be done earlier by the store's clock; absent = at any time. */
  notBefore?: number;
  /**
   * What others wrote that lets the run continue instead; read under its lock, so that nothing is missed.
   * @param fits how many of these entries, in order, the commit takes; the rest is for the next one
   */
  unlessContinued?: (locked: LockedRun, fits: (entries: readonly JournalEntry[]) => number) => ContinueInstead | null;
  /** See `StoreTraits`. */
  maxCommitBytes?: number | undefined;
  /** No earlier try can have settled the run: whoever did is somebody else. Default false. */
  isFirstTry?: boolean;
}

/** What lets a run stay that was about to exit. */
export interface ContinueInstead {
  entries: JournalEntry[];
  /** How many of the entries are results. */
  results: number;
  /** Messages are left in the inbox for the next commit. */
  leavesMessages?: boolean;
  interactions?: Interaction[];
  inbox?: InboxMessage[];
}

export interface ExitResult {
  /** `already`: an earlier try, whose answer was lost, had done it. */
  outcome: 'left' | 'stayed' | 'already' | 'too_early';
  /** Everything appended, results first. */
  entries: JournalEntry[];
  /** The part of `entries` that the attempt did not know of. */
  news: JournalEntry[];
  leavesMessages?: boolean;
}

/**
 * How a running attempt leaves the run: settled, waiting, backing off, needing attention or handed over. Pure deciders
 * for the store's locked transaction (I3, I4). Each is safe to repeat after a COMMIT whose answer was lost: it
 * recognises its own work.
 */
export function decideExit(locked: LockedRun, exit: ExitTransition): TransitionDecision<ExitResult> {
  const { run, now } = locked;
  const target = exit.verb === null ? 'running' : requireVerb({ id: run.id, status: 'running' }, exit.verb).to;
  const pending = exit.pendingInterruptEntries?.(run) ?? [];
  const entries = [...exit.results, ...pending, ...exit.entries(now)];
  if (run.attempt === exit.attempt && isOwnWork(locked, exit, target, entries.length)) {
    return { result: { outcome: 'already', entries, news: [] } };
  }
  requireOwned({ runId: run.id, attempt: exit.attempt }, run);
  if (run.sequence !== exit.sequence) {
    throw new BrokenStoreError(
      `Run ${run.id} has sequence ${run.sequence} in the store, but its owner wrote ${exit.sequence}.`,
      { details: { runId: run.id } },
    );
  }
  if (exit.notBefore !== undefined && now < exit.notBefore)
    return { result: { outcome: 'too_early', entries: [], news: [] } };
  const continued = exit.unlessContinued?.(locked, (given) => countThatFits(given, exit.results, exit.maxCommitBytes));
  if (continued) return continuing(exit, continued);
  const interactions = exit.interactions?.(now);
  const interrupt: RunChange =
    run.interruptRequest && pending.length > 0
      ? { interruptRequest: { ...run.interruptRequest, journaled: true } }
      : {};
  if (exit.verb === null) {
    if (entries.length === 0) return { result: { outcome: 'stayed', entries, news: [] } };
    return {
      result: { outcome: 'stayed', entries, news: [] },
      run: { change: interrupt, entries, totals: exit.totals },
      ...(interactions && { interactions }),
    };
  }
  const change: RunChange = {
    ...exit.change(now),
    ...interrupt,
    // A run that comes back by itself is still to be stopped; one that a person has to start again has stopped.
    ...((target === 'interrupted' || target === 'needs_attention') && { interruptRequest: null }),
    activeMs: run.activeMs + Math.max(0, now - (run.claimedAt ?? now)),
  };
  return {
    result: { outcome: 'left', entries, news: [] },
    ...(isSettled(target)
      ? settlement(locked, exit.verb, entries, change, exit.totals)
      : {
          run: { ...changeStatus(run, exit.verb, entries, change), totals: exit.totals },
          ...(interactions && { interactions }),
        }),
  };
}

/**
 * A run that is still ours and ahead of what we know can only have been moved by an earlier try of this very
 * transaction. A caller who took it from us, or a sweep, may have moved it to the same status by one entry too, for
 * another reason.
 */
function isOwnWork(
  { run, now }: LockedRun,
  exit: ExitTransition,
  target: RunStatus | undefined,
  added: number,
): boolean {
  if (run.status === 'running')
    return (exit.verb === null || exit.unlessContinued !== undefined) && run.sequence > exit.sequence;
  if (exit.isFirstTry || run.status !== target || run.sequence !== exit.sequence + added) return false;
  const { wake, attention } = exit.change(now);
  return (!wake || run.wake?.cause === wake.cause) && (!attention || run.attention?.reason === attention.reason);
}

function continuing(exit: ExitTransition, continued: ContinueInstead): TransitionDecision<ExitResult> {
  const entries = [...exit.results, ...continued.entries];
  // Looked, and found nothing: no commit.
  if (entries.length === 0 && !continued.interactions?.length && !continued.inbox?.length)
    return { result: { outcome: 'stayed', entries, news: [] } };
  return {
    result: { outcome: 'stayed', entries, news: continued.entries, leavesMessages: continued.leavesMessages === true },
    run: { change: {}, entries, totals: { ...exit.totals, results: exit.totals.results + continued.results } },
    ...(continued.interactions && { interactions: continued.interactions }),
    ...(continued.inbox && { inbox: continued.inbox }),
  };
}

/** Why a run is `timed_out`. */
export function deadlinePassed(): RecordedError {
  return recordedFailure('RUN_TIMED_OUT', 'The run passed its deadline.');
}

/** The writes that settle a run: its interactions are withdrawn and its session advances. */
export function settlement(
  locked: LockedRun,
  verb: RunVerb,
  entries: JournalEntry[],
  change: RunChange = {},
  totals?: RunTotals,
): RunWrites {
  const { run, now, session } = locked;
  const completed = verb === 'complete';
  // A failed run may be retried, and still delivers them then.
  const inbox = verb === 'fail' ? [] : withdrawInbox(locked, entries);
  const settled: RunChange = {
    ...change,
    waitingFor: [],
    attention: null,
    wake: null,
    nextAttemptAt: null,
    interruptRequest: null,
    finishedAt: now,
    ...(completed && session && { precedingRunId: session.latestCompletedRunId }),
  };
  return {
    run: { ...changeStatus(run, verb, entries, settled), ...(totals && { totals }) },
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
  // In the entry itself: one of its own would make the transaction's length depend on the inbox, by which it knows
  // itself again.
  if (closing && queued.length > 0) Object.assign(closing, { withdrawn: queued.map(({ requestId }) => requestId) });
  return queued.map((message) => ({ ...message, status: 'withdrawn' }));
}
