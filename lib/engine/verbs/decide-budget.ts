import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { LockedRun, RunWrites } from '../../contracts/ports/run-store.port.js';
import type { BudgetDecision } from '../../contracts/run-requests.js';
import { IllegalTransitionError } from '../../errors/request.errors.js';
import { settlement } from '../settle-run.js';
import { becomePending } from '../transitions.js';
import { recordedFailure } from '../values/recorded-error.js';
import { hasBudgetLeft, stillWaiting } from './waiting-runs.js';

// A run's token budget in a person's hands: grant adds, deny ends the run, and both are recorded with who did it.

export function decideGrant(locked: LockedRun, given: number | undefined, { by, note }: BudgetDecision): RunWrites {
  const { run, now } = locked;
  const limit = requireExhausted(locked, 'grant');
  const consumed = run.totals.usage.totalTokens;
  const amount = given ?? Math.max(1, consumed - limit + 1);
  const maxTotalTokens = limit + amount;
  const granted: JournalEntry = {
    type: 'budget.granted',
    at: now,
    maxTotalTokens,
    consumed,
    amount,
    by,
    ...(note !== undefined && { note }),
  };
  const change = { budgetMaxTotalTokens: maxTotalTokens };
  if (!hasBudgetLeft(run, maxTotalTokens)) return { run: { change, entries: [granted] } };
  return (
    stillWaiting(locked, 'budget', [granted], change) ??
    becomePending(locked, 'grant', { cause: 'budget', by }, [granted], change)
  );
}

export function decideDenial(locked: LockedRun, { by, note }: BudgetDecision): RunWrites {
  const { run, now } = locked;
  const maxTotalTokens = requireExhausted(locked, 'deny');
  const error = recordedFailure(
    'BUDGET_DENIED',
    `No more tokens were granted by ${by}${note === undefined ? '' : `: ${note}`}.`,
  );
  const entries: JournalEntry[] = [
    {
      type: 'budget.denied',
      at: now,
      maxTotalTokens,
      consumed: run.totals.usage.totalTokens,
      by,
      ...(note !== undefined && { note }),
    },
    { type: 'run.failed', at: now, error },
  ];
  return settlement(locked, 'fail', entries, { error });
}

/** @returns the limit that was reached */
function requireExhausted({ run }: LockedRun, verb: string): number {
  if (run.status === 'waiting' && run.waitingFor.includes('budget') && run.budgetMaxTotalTokens !== null)
    return run.budgetMaxTotalTokens;
  throw new IllegalTransitionError(
    `Run ${run.id} is ${run.status} and does not wait for budget: ${verb} is not possible.`,
    { details: { runId: run.id, status: run.status, verb } },
  );
}
