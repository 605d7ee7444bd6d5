/**
 * Every legal change of a run's status, as data: from where, by which verb, to where, by whom, and the journal entry it appends.
 * One rule: a change of status appends exactly one entry of this table. The engine asks {@link transitionOf}; nothing else decides legality.
 */
import type { JournalEntryType } from './journal-entry.js';
import type { RunChange, RunRecord } from './run.js';
import { RUN_STATUSES, isSettled, type RunStatus } from './run-status.js';

/** What can be done to a run. */
export type RunVerb =
  | 'dequeue'
  | 'claim'
  | 'take_over'
  | 'hand_over'
  | 'back_off'
  | 'suspend'
  | 'interrupt'
  | 'call_attention'
  | 'complete'
  | 'fail'
  | 'block'
  | 'time_out'
  | 'cancel'
  | 'answer'
  | 'resume'
  | 'seize'
  | 'resolve'
  | 'retry'
  | 'restart';

/** Who may do it: the owner of the current attempt, a caller of `RunService`, the session's advance, or a sweep. */
export type TransitionActor = 'worker' | 'caller' | 'session' | 'sweep';

export interface RunTransition {
  from: readonly RunStatus[];
  verb: RunVerb;
  to: RunStatus;
  who: readonly TransitionActor[];
  /** The entry that tells it. */
  entry: JournalEntryType;
}

const OPEN = RUN_STATUSES.filter((status) => !isSettled(status));
const SETTLED = RUN_STATUSES.filter(isSettled);

export const RUN_TRANSITIONS: readonly RunTransition[] = [
  { from: ['queued'], verb: 'dequeue', to: 'pending', who: ['session'], entry: 'run.dequeued' },
  { from: ['pending', 'retry_wait'], verb: 'claim', to: 'running', who: ['worker'], entry: 'run.resumed' },
  { from: ['running'], verb: 'take_over', to: 'running', who: ['worker'], entry: 'run.resumed' },
  { from: ['running'], verb: 'hand_over', to: 'pending', who: ['worker'], entry: 'run.handed_over' },
  { from: ['running'], verb: 'back_off', to: 'retry_wait', who: ['worker'], entry: 'run.backing_off' },
  { from: ['running'], verb: 'suspend', to: 'waiting', who: ['worker'], entry: 'run.suspended' },
  {
    from: ['running', 'pending', 'retry_wait'],
    verb: 'interrupt',
    to: 'interrupted',
    who: ['worker', 'caller'],
    entry: 'run.interrupted',
  },
  {
    from: ['running', 'pending', 'retry_wait'],
    verb: 'call_attention',
    to: 'needs_attention',
    who: ['worker', 'sweep'],
    entry: 'run.attention_needed',
  },
  { from: ['running'], verb: 'complete', to: 'completed', who: ['worker'], entry: 'run.completed' },
  { from: ['running', 'waiting'], verb: 'fail', to: 'failed', who: ['worker', 'caller'], entry: 'run.failed' },
  { from: ['running'], verb: 'block', to: 'blocked', who: ['worker'], entry: 'run.blocked' },
  { from: OPEN, verb: 'time_out', to: 'timed_out', who: ['worker', 'sweep'], entry: 'run.timed_out' },
  { from: OPEN, verb: 'cancel', to: 'cancelled', who: ['caller'], entry: 'run.cancelled' },
  { from: ['waiting'], verb: 'answer', to: 'pending', who: ['caller', 'sweep'], entry: 'interaction.answered' },
  {
    from: ['waiting', 'interrupted', 'needs_attention'],
    verb: 'resume',
    to: 'pending',
    who: ['caller'],
    entry: 'run.resume_requested',
  },
  { from: ['running'], verb: 'seize', to: 'pending', who: ['caller'], entry: 'run.takeover_requested' },
  { from: ['needs_attention'], verb: 'resolve', to: 'pending', who: ['caller'], entry: 'tool.resolved' },
  { from: ['failed', 'needs_attention'], verb: 'retry', to: 'pending', who: ['caller'], entry: 'run.retried' },
  { from: SETTLED, verb: 'restart', to: 'pending', who: ['caller'], entry: 'run.restarted' },
];

/** The transition for a verb from a status, or undefined where it is not legal. */
export function transitionOf(from: RunStatus, verb: RunVerb): RunTransition | undefined {
  return RUN_TRANSITIONS.find((transition) => transition.verb === verb && transition.from.includes(from));
}

/**
 * Whether a store may write this change: the status of a settled run is left only for `pending`, by a retry of a failed run or by a restart
 * that counts itself. Every store asks this for every transition, so that no decider can settle a run twice.
 */
export function respectsSettled(run: Pick<RunRecord, 'status' | 'restarts'>, change: RunChange): boolean {
  if (change.status === undefined || !isSettled(run.status)) return true;
  return change.status === 'pending' && (run.status === 'failed' || change.restarts === run.restarts + 1);
}
