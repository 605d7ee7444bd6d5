import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { Message } from '../../contracts/message.js';
import type { LockedRun, RunWrites } from '../../contracts/ports/run-store.port.js';
import type { RetryOptions } from '../../contracts/run-requests.js';
import type { RunVerb } from '../../contracts/run-transitions.js';
import type { RunChange, RunRecord, WakeNote } from '../../contracts/run.js';
import { invalidRequest } from '../../contracts/schema.js';
import { IllegalTransitionError } from '../../errors/request.errors.js';
import { withdrawInbox } from '../settle-run.js';
import { becomePending, requireVerb } from '../transitions.js';

export function decideRetry(locked: LockedRun, { maxTurns, ...note }: RetryOptions): RunWrites {
  const { run, now } = locked;
  requireVerb(run, 'retry');
  if (run.status === 'failed') requireMeasured(run, 'retry');
  const limit = turnLimit(run, maxTurns, 'retry', run.error?.code === 'MAX_TURNS_EXCEEDED');
  const entries: JournalEntry[] = [{ type: 'run.retried', at: now, ...limit.fact, ...note }];
  const wake: WakeNote = { cause: 'retried', ...note };
  if (run.status === 'needs_attention')
    return becomePending(locked, 'retry', wake, entries, { interruptRequest: null, ...limit.change });
  const again = takeHeadAgain(locked, 'retry');
  return {
    ...becomePending(locked, 'retry', wake, entries, {
      error: null,
      output: null,
      finishedAt: null,
      ...limit.change,
    }),
    ...again,
  };
}

/** A new generation; attempt and sequence keep rising, and the generation before is never rewritten. */
export function decideRestart(locked: LockedRun, messages: Message[], { maxTurns, ...note }: RetryOptions): RunWrites {
  const { run, now } = locked;
  requireVerb(run, 'restart');
  requireMeasured(run, 'restart');
  const limit = turnLimit(run, maxTurns, 'restart', true);
  const again = takeHeadAgain(locked, 'restart');
  const restarts = run.restarts + 1;
  const entries: JournalEntry[] = [
    { type: 'run.restarted', at: now, generation: restarts + 1, messages, ...limit.fact, ...note },
  ];
  const change: RunChange = {
    ...limit.change,
    restarts,
    error: null,
    output: null,
    finishedAt: null,
    activeMs: 0,
    interruptRequest: null,
    // One that has passed would end the new generation before it began.
    ...(run.deadlineAt !== null && run.deadlineAt <= now && { deadlineAt: null }),
  };
  return {
    ...becomePending(locked, 'restart', { cause: 'restarted', ...note }, entries, change),
    ...again,
    inbox: withdrawInbox(locked, entries),
  };
}

/**
 * A settled run may come back to its session only while no later run has started there. A completed one leaves the
 * history until it has completed anew: its messages are no longer those that the session ended with, and no run may be
 * built on them meanwhile.
 */
function takeHeadAgain({ run, session }: LockedRun, verb: RunVerb): Pick<RunWrites, 'session'> {
  if (!session) return {};
  const isLatest = session.latestCompletedRunId === run.id;
  const history = isLatest ? { latestCompletedRunId: run.precedingRunId } : {};
  // Runs of a parallel session may have taken this one into their history whatever their order.
  if (session.mode === 'parallel' && (run.status !== 'completed' || session.lastOrder === 1))
    return { session: history };
  if (session.mode === 'serial' && session.headRunId === null && session.startedOrder <= (run.sessionOrder ?? 0))
    return { session: { ...history, headRunId: run.id } };
  throw impossible(run, verb, `another run of session ${session.id} has started since.`);
}

function impossible(run: RunRecord, verb: RunVerb, reason: string): IllegalTransitionError {
  const { id: runId, status, totals, frozen } = run;
  return new IllegalTransitionError(`Run ${runId} is ${status}: ${verb} is not possible, because ${reason}`, {
    details: { runId, status, verb, turn: totals.turn, maxTurns: frozen.maxTurns },
  });
}

/** A budget counts over the whole run too: with a reply of unknown cost in it, the run would fail again at once. */
function requireMeasured(run: RunRecord, verb: RunVerb): void {
  if (run.budgetMaxTotalTokens === null || run.totals.usage.unknownCalls === 0) return;
  throw impossible(
    run,
    verb,
    'it has a token budget, and its model did not report how many tokens a reply used. Start a new run with a model that does, or without a budget.',
  );
}

/**
 * The turn limit from now on. It counts over the whole run, so that one which is used up would end the run again before
 * its next request.
 * @param needsTurn whether the run goes on with a new request
 */
function turnLimit(
  run: RunRecord,
  maxTurns: number | undefined,
  verb: RunVerb,
  needsTurn: boolean,
): { change: RunChange; fact: { maxTurns?: number } } {
  const made = run.totals.turn;
  if (maxTurns !== undefined) {
    if (maxTurns <= made)
      throw invalidRequest([
        { field: 'maxTurns', problem: `must be more than ${made}, the model calls that the run has made` },
      ]);
    return { change: { frozen: { ...run.frozen, maxTurns } }, fact: { maxTurns } };
  }
  if (needsTurn && run.frozen.maxTurns <= made)
    throw impossible(
      run,
      verb,
      `it has made ${made} model calls and its limit (maxTurns) is ${run.frozen.maxTurns}. Give ${verb} a higher maxTurns.`,
    );
  return { change: {}, fact: {} };
}
