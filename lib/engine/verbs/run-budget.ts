import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { LockedRun, RunWrites } from '../../contracts/ports/run-store.port.js';
import type { BudgetDecision } from '../../contracts/run-requests.js';
import type { BudgetStatus } from '../../contracts/run-view.js';
import { readRequest, requireId, requireOptions } from '../../contracts/schema.js';
import { IllegalTransitionError } from '../../errors/request.errors.js';
import type { EnginePorts } from '../engine-ports.js';
import type { JournalFold } from '../journal/fold-journal.js';
import { requireRunState } from '../journal/read-whole-journal.js';
import { DENIAL, GRANT } from '../requests/request-schemas.js';
import type { RunWorker } from '../run-worker.js';
import { settlement } from '../settle-run.js';
import { becomePending } from '../transitions.js';
import type { CallerTransition } from './caller-transition.js';
import { hasBudgetLeft, stillWaiting } from './waiting-runs.js';
import { recordedFailure } from '../values/recorded-error.js';

/** A run's token budget in a person's hands: grant adds, deny ends the run, and both are recorded with who did it. */
export class RunBudget {
  constructor(
    private readonly ports: EnginePorts,
    private readonly fold: JournalFold,
    private readonly worker: RunWorker,
    private readonly callers: CallerTransition,
  ) {}

  /**
   * Adds to the limit of a run that waits for budget, which continues once the limit exceeds what it has consumed.
   * @param amount tokens; default what is missing
   * @throws IllegalTransitionError when the run does not wait for budget
   */
  async grant(runId: string, amount: number | undefined, decision: BudgetDecision): Promise<void> {
    requireOptions(decision);
    const { amount: added, ...told } = readRequest(GRANT, { ...decision, amount });
    await this.callers.move(runId, false, (locked) => decideGrant(locked, added, told));
    this.worker.wake();
  }

  /** Ends a run that waits for budget: `failed`, code BUDGET_DENIED. */
  async deny(runId: string, decision: BudgetDecision): Promise<void> {
    const told = readRequest(DENIAL, decision);
    await this.callers.move(runId, true, (locked) => decideDenial(locked, told));
    this.worker.wake();
  }

  async status(runId: string): Promise<BudgetStatus> {
    const id = requireId('runId', runId);
    const { run, state } = await requireRunState(this.ports.store, this.fold, id);
    const limit = run.budgetMaxTotalTokens;
    const consumed = run.totals.usage.totalTokens;
    return {
      ...(limit !== null && { maxTotalTokens: limit, remaining: Math.max(0, limit - consumed) }),
      consumed,
      grants: state.grants.map((grant) => ({ ...grant, at: new Date(grant.at) })),
    };
  }
}

function decideGrant(locked: LockedRun, given: number | undefined, { by, note }: BudgetDecision): RunWrites {
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

function decideDenial(locked: LockedRun, { by, note }: BudgetDecision): RunWrites {
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
