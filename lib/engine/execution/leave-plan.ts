/** What an attempt writes when it leaves its run, per reason. Times come from the store's clock inside the transaction. */
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { RunChange, RunRecord } from '../../contracts/run.js';
import { askFor, requestedEntry } from '../interactions.js';
import type { NextAction } from '../next-action.js';
import type { Leave } from '../settle-run.js';
import type { EnginePorts } from '../engine-ports.js';
import type { ExecutionEnd } from './run-execution.js';

export type LeavePlan = Pick<Leave, 'verb' | 'change' | 'entries' | 'interactions' | 'notBefore'> & {
  end: ExecutionEnd;
  /** Ms after which the run may be claimed again by itself. */
  afterMs?: number;
};

type LeavingAction = Extract<NextAction, { do: 'complete' | 'fail' | 'suspend' | 'call_attention' }>;

export function leaveFor(action: LeavingAction, run: RunRecord, ports: Pick<EnginePorts, 'digester'>): LeavePlan {
  switch (action.do) {
    case 'complete':
      return {
        verb: 'complete',
        end: 'settled',
        entries: (at) => [{ type: 'run.completed', at }],
        change: () => ({ output: action.output, error: null }),
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
        entries: (at) => [{ type: 'run.attention_needed', at, attention: action.attention }],
        change: () => ({ attention: action.attention }),
      };
    case 'suspend': {
      const asks = (now: number) =>
        action.calls
          .filter(({ interactionId }) => interactionId === null)
          .map((call) => askFor(call, run, now, ports.digester));
      const change = (): RunChange => ({ waitingFor: ['approval'] });
      const entries = (at: number): JournalEntry[] => [
        ...asks(at).map((ask) => requestedEntry(ask, at)),
        { type: 'run.suspended', at, waitingFor: ['approval'] },
      ];
      return { verb: 'suspend', end: 'suspended', entries, change, interactions: asks };
    }
  }
}

/** RUN-6. @param limitAt epoch ms by the store's clock */
export function timeOutPlan(limitAt: number): LeavePlan {
  const error = { code: 'RUN_TIMED_OUT', message: 'The run passed its deadline.' };
  return {
    verb: 'time_out',
    end: 'settled',
    notBefore: limitAt,
    entries: (at) => [{ type: 'run.timed_out', at, error }],
    change: () => ({ error }),
  };
}

/** MOD-2, decision 12: the run comes back by itself after a delay, in whatever process is alive. */
export function backOffPlan(key: string, delayMs: number, announcedMs?: number): LeavePlan {
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
        ...(announcedMs !== undefined && { announcedMs }),
      },
    ],
    change: (now) => ({ nextAttemptAt: now + delayMs }),
  };
}

/** Decision 16: parked at a boundary, for any worker to go on with. */
export function handOverPlan(run: RunRecord): LeavePlan {
  return {
    verb: 'hand_over',
    end: 'handed_over',
    entries: (at) => [{ type: 'run.handed_over', at, attempt: run.attempt }],
    change: () => ({ wake: { cause: 'handover', ...(run.owner !== null && { previousOwner: run.owner }) } }),
  };
}
