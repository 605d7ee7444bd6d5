import type { JournalEntryType } from './journal-entry.js';
import type { RunChange, RunRecord } from './run.js';
import { RUN_STATUSES, isSettled, type RunStatus } from './run-status.js';

export interface RunTransition {
  from: readonly RunStatus[];
  to: RunStatus;
  /** The change is journaled by one of these. */
  entries: readonly JournalEntryType[];
}

const OPEN = RUN_STATUSES.filter((status) => !isSettled(status));
const CLAIMABLE: readonly RunStatus[] = ['pending', 'retry_wait'];

const TRANSITIONS = {
  /** The session has come to it. */
  dequeue: { from: ['queued'], to: 'pending', entries: ['run.dequeued'] },
  claim: { from: CLAIMABLE, to: 'running', entries: ['run.started', 'run.resumed'] },
  /** From an owner whose lease has ended. */
  take_over: { from: ['running'], to: 'running', entries: ['run.resumed'] },
  hand_over: { from: ['running'], to: 'pending', entries: ['run.handed_over'] },
  back_off: { from: ['running'], to: 'retry_wait', entries: ['run.backing_off'] },
  suspend: { from: ['running'], to: 'waiting', entries: ['run.suspended'] },
  interrupt: { from: ['running', ...CLAIMABLE], to: 'interrupted', entries: ['run.interrupted'] },
  call_attention: { from: ['running', ...CLAIMABLE], to: 'needs_attention', entries: ['run.attention_needed'] },
  complete: { from: ['running'], to: 'completed', entries: ['run.completed'] },
  fail: { from: ['running', 'waiting'], to: 'failed', entries: ['run.failed'] },
  time_out: { from: OPEN, to: 'timed_out', entries: ['run.timed_out'] },
  cancel: { from: OPEN, to: 'cancelled', entries: ['run.cancelled'] },
  /** By the last decision that a waiting run waits for. */
  answer: { from: ['waiting'], to: 'pending', entries: ['interaction.answered', 'interaction.expired'] },
  /** By tokens for a run that waits for budget. */
  grant: { from: ['waiting'], to: 'pending', entries: ['budget.granted'] },
  resume: {
    from: ['waiting', 'interrupted', 'needs_attention'],
    to: 'pending',
    entries: ['run.resume_requested'],
  },
  /** From a live owner. */
  seize: { from: ['running'], to: 'pending', entries: ['run.takeover_requested'] },
  resolve: { from: ['needs_attention'], to: 'pending', entries: ['tool.resolved'] },
  retry: { from: ['failed', 'needs_attention'], to: 'pending', entries: ['run.retried'] },
  restart: { from: RUN_STATUSES.filter(isSettled), to: 'pending', entries: ['run.restarted'] },
} satisfies Record<string, RunTransition>;

/** What can be done to a run. */
export type RunVerb = keyof typeof TRANSITIONS;

/**
 * Every legal change of a run's status, as data. `changeStatus` of the engine looks a change up here, sets the status
 * and checks its entry; no other code decides what is legal.
 */
export const RUN_TRANSITIONS: Readonly<Record<RunVerb, RunTransition>> = TRANSITIONS;

/** The transition for a verb from a status, or undefined where it is not legal. */
export function transitionOf(from: RunStatus, verb: RunVerb): RunTransition | undefined {
  const transition = RUN_TRANSITIONS[verb];
  return transition.from.includes(from) ? transition : undefined;
}

/**
 * Whether a store may write this change: the status of a settled run is left only for `pending`, by a retry of a failed
 * run or by a restart that counts itself. Every store asks this for every transition, so that no decider can settle a
 * run twice (I4).
 */
export function respectsSettled(run: Pick<RunRecord, 'status' | 'restarts'>, change: RunChange): boolean {
  if (change.status === undefined || !isSettled(run.status)) return true;
  return change.status === 'pending' && (run.status === 'failed' || change.restarts === run.restarts + 1);
}
