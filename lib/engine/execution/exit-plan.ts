/** What an attempt writes when it leaves its run, per reason. Times come from the store's clock inside the transaction. */
import type { Interaction } from '../../contracts/interaction.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { UserMessage } from '../../contracts/message.js';
import type { LockedRun } from '../../contracts/ports/run-store.port.js';
import type { RetryPolicy } from '../../contracts/retry-policy.js';
import type { WaitReason } from '../../contracts/run-status.js';
import type { RunRecord } from '../../contracts/run.js';
import { decisionsToTakeUp, requestedEntry } from '../interactions.js';
import type { ModelState, RunState } from '../journal/run-state.js';
import type { NextAction } from '../next-action.js';
import type { ExitTransition, ContinueInstead } from '../settle-run.js';
import { retryDelay } from './model-turn.js';
import type { ModelFailure } from './read-reply.js';
import type { ExecutionEnd } from './attempt.js';
import { recordedFailure } from '../values/recorded-error.js';

export type ExitPlan = Pick<
  ExitTransition,
  'verb' | 'change' | 'entries' | 'interactions' | 'notBefore' | 'unlessContinued'
> & {
  end: ExecutionEnd;
  /** Ms after which the run may be claimed again by itself. */
  afterMs?: number;
};

export type ExitAction = Extract<NextAction, { do: 'complete' | 'fail' | 'suspend' | 'call_attention' | 'interrupt' }>;

/** What a leaving attempt knows about people. */
export interface ExitContext {
  run: RunRecord;
  state: RunState;
  /** Asks that go with it, built at the store's time. */
  asks: (now: number) => Interaction[];
}

export function exitFor(action: ExitAction, context: ExitContext): ExitPlan {
  switch (action.do) {
    case 'complete':
      return {
        verb: 'complete',
        end: 'settled',
        entries: (at) => [{ type: 'run.completed', at }],
        change: () => ({ output: action.output, error: null }),
        unlessContinued: (locked, fits) => steeringToDeliver(locked, context.run.id, fits),
      };
    case 'fail':
      return {
        verb: 'fail',
        end: 'settled',
        entries: (at) => [{ type: 'run.failed', at, error: action.error }],
        change: () => ({ error: action.error, output: action.output }),
      };
    case 'call_attention':
      return {
        verb: 'call_attention',
        end: 'suspended',
        entries: (at) => [
          ...context.asks(at).map((asked) => requestedEntry(asked, at)),
          { type: 'run.attention_needed', at, attention: action.attention },
        ],
        change: () => ({ attention: action.attention }),
        interactions: context.asks,
      };
    case 'interrupt':
      return {
        verb: 'interrupt',
        end: 'suspended',
        entries: (at) => [
          ...context.asks(at).map((asked) => requestedEntry(asked, at)),
          { type: 'run.interrupted', at },
        ],
        change: () => ({}),
        interactions: context.asks,
      };
    case 'suspend':
      return suspendPlan(action.waitingFor, context);
  }
}

/** Decisions made and tokens granted since the run was claimed let it go on at once: nobody has to wake it. */
function suspendPlan(waitingFor: WaitReason[], { state, asks, run }: ExitContext): ExitPlan {
  const consumed = state.totals.usage.totalTokens;
  const budget = run.budgetMaxTotalTokens;
  return {
    verb: 'suspend',
    end: 'suspended',
    entries: (at) => [
      ...asks(at).map((asked) => requestedEntry(asked, at)),
      ...(waitingFor.includes('budget')
        ? [{ type: 'budget.exhausted' as const, at, maxTotalTokens: budget, consumed }]
        : []),
      { type: 'run.suspended', at, waitingFor },
    ],
    change: () => ({ waitingFor }),
    interactions: asks,
    unlessContinued: (locked, fits) => {
      const taken = decisionsToTakeUp(locked, state, fits);
      const limit = locked.run.budgetMaxTotalTokens;
      const granted = waitingFor.includes('budget') && (limit === null || limit > consumed);
      if (!taken.isWaitedFor && !granted) return null;
      // Whoever asks now is asked for all the same.
      const asked = asks(locked.now);
      return {
        ...taken,
        entries: [...asked.map((one) => requestedEntry(one, locked.now)), ...taken.entries],
        interactions: [...asked, ...taken.interactions],
      };
    },
  };
}

/** What is in the inbox becomes user messages, in order of acceptance and as much as one commit takes; null when it is empty. */
export function steeringToDeliver(
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

/** A boundary at which messages wait: the run stays, and they are taken in. */
export function deliverPlan(runId: string): ExitPlan {
  return {
    verb: null,
    end: 'suspended',
    entries: () => [],
    change: () => ({}),
    unlessContinued: (locked, fits) => steeringToDeliver(locked, runId, fits) ?? { entries: [], results: 0 },
  };
}

/** Nothing but what is owed about a stop: told at once, because what is under way may take long. */
export function interruptNoticePlan(): ExitPlan {
  return { verb: null, end: 'suspended', entries: () => [], change: () => ({}) };
}

/** @param limitAt epoch ms by the store's clock */
export function timeOutPlan(limitAt: number): ExitPlan {
  const error = recordedFailure('RUN_TIMED_OUT', 'The run passed its deadline.');
  return {
    verb: 'time_out',
    end: 'settled',
    notBefore: limitAt,
    entries: (at) => [{ type: 'run.timed_out', at, error }],
    change: () => ({ error }),
  };
}

/** The run comes back by itself after a delay, in whatever process is alive. */
export function backOffPlan(key: string | null, delayMs: number, retryAfterMs?: number): ExitPlan {
  return {
    verb: 'back_off',
    end: 'backing_off',
    afterMs: delayMs,
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

/** Parked at a boundary, for any worker to go on with. */
export function handOverPlan(run: RunRecord): ExitPlan {
  return {
    verb: 'hand_over',
    end: 'handed_over',
    entries: (at) => [{ type: 'run.handed_over', at, attempt: run.attempt }],
    change: () => ({ wake: { cause: 'handover', ...(run.owner !== null && { previousOwner: run.owner }) } }),
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
