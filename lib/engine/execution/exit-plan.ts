import type { Interaction } from '../../contracts/interaction.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { UserMessage } from '../../contracts/message.js';
import type { LockedRun } from '../../contracts/ports/run-store.port.js';
import { backoff, type RetryPolicy } from '../../contracts/policies.js';
import type { WaitReason } from '../../contracts/run-status.js';
import type { RunChange, RunRecord } from '../../contracts/run.js';
import { decisionsToTakeUp, requestedEntry } from '../interactions.js';
import type { ModelState, RunState } from '../journal/run-state.js';
import type { NextAction } from '../next-action.js';
import { type ContinueInstead, deadlinePassed, type ExitTransition } from '../settle-run.js';
import { recordedFailure } from '../values/recorded-error.js';
import type { ModelFailure } from './model-reply.js';

/** What an attempt writes in a transaction of its own. Times come from the store's clock inside the transaction. */
export type ExitPlan = Pick<
  ExitTransition,
  'verb' | 'change' | 'entries' | 'interactions' | 'notBefore' | 'unlessContinued'
>;

type ExitAction = Extract<NextAction, { do: 'complete' | 'fail' | 'suspend' | 'call_attention' | 'interrupt' }>;

export interface ExitContext {
  run: RunRecord;
  state: RunState;
  /** Interactions that are requested with the exit, built at the store's time. */
  interactions: (now: number) => Interaction[];
}

export function exitFor(action: ExitAction, context: ExitContext): ExitPlan {
  switch (action.do) {
    case 'complete':
      return {
        verb: 'complete',
        entries: (at) => [{ type: 'run.completed', at }],
        change: () => ({ output: action.output, error: null }),
        unlessContinued: (locked, fits) => steeringToDeliver(locked, context.run.id, fits),
      };
    case 'fail':
      return {
        verb: 'fail',
        entries: (at) => [{ type: 'run.failed', at, error: action.error }],
        change: () => ({ error: action.error, output: action.output }),
      };
    case 'call_attention': {
      const { attention } = action;
      return suspendedExit('call_attention', context, { attention }, (at) => [
        { type: 'run.attention_needed', at, attention },
      ]);
    }
    case 'interrupt':
      return suspendedExit('interrupt', context, {}, (at) => [{ type: 'run.interrupted', at }]);
    case 'suspend':
      return suspendPlan(action.waitingFor, context);
  }
}

function suspendedExit(
  verb: ExitPlan['verb'],
  { interactions }: ExitContext,
  change: RunChange,
  entries: ExitPlan['entries'],
): ExitPlan {
  return {
    verb,
    entries: (at) => [...interactions(at).map((asked) => requestedEntry(asked, at)), ...entries(at)],
    change: () => change,
    interactions,
  };
}

/** Decisions made and tokens granted since the run was claimed let it go on at once, without being woken. */
function suspendPlan(waitingFor: WaitReason[], context: ExitContext): ExitPlan {
  const { state, interactions, run } = context;
  const consumed = state.totals.usage.totalTokens;
  const maxTotalTokens = run.budgetMaxTotalTokens;
  const isExhausted = waitingFor.includes('budget');
  const plan = suspendedExit('suspend', context, { waitingFor }, (at) => [
    ...(isExhausted ? [{ type: 'budget.exhausted' as const, at, maxTotalTokens, consumed }] : []),
    { type: 'run.suspended', at, waitingFor },
  ]);
  plan.unlessContinued = (locked, fits) => {
    const taken = decisionsToTakeUp(locked, state, fits);
    const limit = locked.run.budgetMaxTotalTokens;
    const isGranted = isExhausted && (limit === null || limit > consumed);
    if (!taken.isWaitedFor && !isGranted) return null;
    // The interactions that the exit would have requested are requested all the same.
    const asked = interactions(locked.now);
    return {
      ...taken,
      entries: [...asked.map((one) => requestedEntry(one, locked.now)), ...taken.entries],
      interactions: [...asked, ...taken.interactions],
    };
  };
  return plan;
}

/**
 * The messages of the inbox as user messages, in order of acceptance and as many as one commit takes; null when it is
 * empty.
 */
function steeringToDeliver(
  locked: LockedRun,
  runId: string,
  fits: (entries: readonly JournalEntry[]) => number,
): ContinueInstead | null {
  const queued = locked.inbox.filter(({ status }) => status === 'queued');
  if (queued.length === 0) return null;
  const entries = queued.map((message): JournalEntry => ({
    type: 'run.steered',
    at: locked.now,
    requestId: message.requestId,
    sender: message.sender,
    message: { ...(message.message as unknown as UserMessage), id: `${runId}/steer/${message.requestId}` },
  }));
  const count = fits(entries);
  return {
    results: 0,
    entries: entries.slice(0, count),
    inbox: queued.slice(0, count).map((message) => ({ ...message, status: 'delivered' })),
    leavesMessages: count < queued.length,
  };
}

/**
 * The run stays with its owner. Written for a requested interrupt alone, it tells of it at once, because what is in
 * flight may take long.
 */
export const STAY: ExitPlan = { verb: null, entries: () => [], change: () => ({}) };

/** A boundary at which messages wait: the run stays, and they are taken in. */
export function deliverPlan(runId: string): ExitPlan {
  return {
    ...STAY,
    unlessContinued: (locked, fits) => steeringToDeliver(locked, runId, fits) ?? { entries: [], results: 0 },
  };
}

/** @param limitAt epoch ms by the store's clock */
export function timeOutPlan(limitAt: number): ExitPlan {
  const error = deadlinePassed();
  return {
    verb: 'time_out',
    notBefore: limitAt,
    entries: (at) => [{ type: 'run.timed_out', at, error }],
    change: () => ({ error }),
  };
}

/** The run comes back by itself after a delay, in whatever process is alive. */
function backOffPlan(key: string | null, delayMs: number, retryAfterMs?: number): ExitPlan {
  return {
    verb: 'back_off',
    entries: (at) => [
      {
        type: 'run.backing_off',
        at,
        key,
        nextAttemptAt: at + delayMs,
        delayMs,
        ...(retryAfterMs !== undefined && { retryAfterMs }),
      },
    ],
    change: (now) => ({ nextAttemptAt: now + delayMs }),
  };
}

/**
 * After trouble with the store: the delay grows with the number of times that the unfinished calls were begun in vain.
 */
export function troublePlan({ run, state }: Pick<ExitContext, 'run' | 'state'>, key: string | null): ExitPlan {
  const tries = state.calls.filter(({ status }) => status !== 'done').map(({ attempts }) => attempts);
  return backOffPlan(key, backoff(run.frozen.modelRetry, Math.max(1, ...tries)));
}

/** Parked at a boundary, for any worker to continue. */
export function handOverPlan({ attempt, owner }: RunRecord): ExitPlan {
  return {
    verb: 'hand_over',
    entries: (at) => [{ type: 'run.handed_over', at, attempt }],
    change: () => ({ wake: { cause: 'handover', ...(owner !== null && { previousOwner: owner }) } }),
  };
}

/** Another try after a delay, or the end: permanent failures at once, passing ones when the tries are used up. */
export function afterModelFailure(
  policy: RetryPolicy,
  { key, failures }: Pick<ModelState, 'key' | 'failures'>,
  { failure, retryAfterMs, text }: ModelFailure,
): ExitPlan | Extract<NextAction, { do: 'fail' }> {
  const { code, message, retryable } = failure;
  if (retryable !== true) return { do: 'fail', error: { code, message }, output: text ?? null };
  if (failures < policy.maxAttempts) return backOffPlan(key, retryDelay(policy, failures, retryAfterMs), retryAfterMs);
  const exhausted = `The model call failed ${failures} times: ${message}`;
  return { do: 'fail', error: recordedFailure('MODEL_RETRIES_EXHAUSTED', exhausted), output: null };
}

/** Ms until the next request after the n-th failure: what the provider announced, else our own growing delay. */
export function retryDelay(policy: RetryPolicy, failures: number, retryAfterMs: number | undefined): number {
  return retryAfterMs === undefined ? backoff(policy, failures) : Math.min(retryAfterMs, policy.maxRetryAfterMs);
}
