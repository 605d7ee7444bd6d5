import type { JournalEntry } from '../contracts/journal-entry.js';
import type {
  LockedRun,
  RunStore,
  RunWrite,
  RunWrites,
  TransitionDecision,
  TransitionRequest,
} from '../contracts/ports/run-store.port.js';
import { transitionOf, type RunTransition, type RunVerb } from '../contracts/run-transitions.js';
import type { Attention } from '../contracts/run-status.js';
import type { RunChange, RunRecord, WakeNote } from '../contracts/run.js';
import { IllegalTransitionError } from '../errors/request.errors.js';
import type { LifecyclePublisher } from './lifecycle-publisher.js';

/** A decision that writes nothing. */
export const NOTHING: Readonly<RunWrites> = Object.freeze({});

export type Applied<D> = { outcome: 'done'; run: RunRecord; decision: D } | { outcome: 'not_found' | 'busy' };

/**
 * The one way by which a run without a live attempt in this process changes: callers' verbs, claims, the worker and the
 * sweeps. The decision is applied under the lock of the run's row, and everything that was committed is published (I2),
 * the next run of the session included. An attempt of this process writes through its RunJournal, which publishes in
 * the order of its appends.
 */
export class Transitions {
  constructor(
    private readonly store: RunStore,
    private readonly publisher: LifecyclePublisher,
  ) {}

  /** @throws StoreUnavailableError, and what the decider refuses with */
  async apply<D extends RunWrites>(
    runId: string,
    decide: (locked: LockedRun) => D,
    options: Pick<TransitionRequest<D>, 'session' | 'inboxRequestId' | 'skipLocked'> = {},
  ): Promise<Applied<D>> {
    let next: RunRecord | null = null;
    const answer = await this.store.transition<D>({
      ...options,
      runId,
      decide: (locked): TransitionDecision<D> => {
        next = locked.nextInSession;
        const decision = withPendingInterrupt(locked.run, decide(locked));
        return { ...decision, result: decision };
      },
    });
    if (answer.outcome !== 'done') return answer;
    const { run, result: decision } = answer;
    const entries = decision.run?.entries ?? [];
    if (entries.length > 0) this.publisher.committed(run, run.sequence - entries.length + 1, entries);
    if (next) this.publisher.advanced(next, decision);
    return { outcome: 'done', run, decision };
  }
}

/** @throws IllegalTransitionError when the table has no such transition */
export function requireVerb({ id, status }: Pick<RunRecord, 'id' | 'status'>, verb: RunVerb): RunTransition {
  const transition = transitionOf(status, verb);
  if (transition) return transition;
  throw new IllegalTransitionError(`Run ${id} is ${status}: ${verb} is not possible.`, {
    details: { runId: id, status, verb },
  });
}

/**
 * The one writer of a run's status (agent-runs/run-status lints it): the table of contracts/run-transitions says where
 * the verb leads.
 * @param entries the one that the table wants for the change among them
 * @throws IllegalTransitionError when the table has no such transition
 */
export function changeStatus(
  run: Pick<RunRecord, 'id' | 'status'>,
  verb: RunVerb,
  entries: JournalEntry[],
  change: RunChange = {},
): RunWrite {
  const transition = requireVerb(run, verb);
  if (!entries.some(({ type }) => transition.entries.includes(type)))
    throw new Error(`The verb ${verb} is journaled by ${transition.entries.join(' or ')}, which is not written here.`);
  // eslint-disable-next-line agent-runs/run-status -- the one place
  return { change: { ...change, status: transition.to }, entries };
}

/** A person must settle something before the run can continue. */
export function callAttention(
  { run, now: at }: Pick<LockedRun, 'run' | 'now'>,
  attention: Attention,
  change: RunChange = {},
  before: JournalEntry[] = [],
): RunWrites {
  const entries: JournalEntry[] = [...before, { type: 'run.attention_needed', at, attention }];
  return { run: changeStatus(run, 'call_attention', entries, { ...change, attention }) };
}

/** The run becomes claimable, and its next claim journals the cause. */
export function becomePending(
  { run }: LockedRun,
  verb: RunVerb,
  wake: WakeNote,
  entries: JournalEntry[],
  change: RunChange = {},
): { run: RunWrite } {
  return {
    run: changeStatus(run, verb, entries, {
      ...change,
      wake,
      waitingFor: [],
      attention: null,
      nextAttemptAt: null,
      recoveries: 0,
      resultsAtClaim: run.totals.results,
    }),
  };
}

/**
 * A requested stop of a run that has an owner is a note on the run's row, because the journal is
 * the owner's. It is journaled once, with its author and reason, under the lock of the row: by the owner's next
 * transaction, or by the transition that takes it off the row before.
 * @returns the entry that the journal still lacks
 */
export function pendingInterruptEntries({
  interruptRequest: wanted,
}: Pick<RunRecord, 'interruptRequest'>): JournalEntry[] {
  if (wanted === null || wanted.journaled) return [];
  const { at, by, reason } = wanted;
  return [
    {
      type: 'run.interrupt_requested',
      at,
      ...(by !== undefined && { by }),
      ...(reason !== undefined && { reason }),
    },
  ];
}

/**
 * For one transaction that may be tried again after a COMMIT whose answer was lost: the row no longer says then what
 * was written.
 */
export function pendingInterruptOnce(): (run: Pick<RunRecord, 'interruptRequest'>) => JournalEntry[] {
  let pending: JournalEntry[] = [];
  return (run) => {
    const found = pendingInterruptEntries(run);
    if (found.length > 0) pending = found;
    return pending;
  };
}

/** Journals the stop that a decision takes off the row, before what the decision says. */
function withPendingInterrupt<D extends RunWrites>(run: RunRecord, decision: D): D {
  const pending = pendingInterruptEntries(run);
  if (decision.run?.change.interruptRequest !== null || pending.length === 0) return decision;
  return { ...decision, run: { ...decision.run, entries: [...pending, ...decision.run.entries] } };
}
