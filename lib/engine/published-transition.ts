import type { JournalEntry } from '../contracts/journal-entry.js';
import type {
  LockedRun,
  RunStore,
  TransitionDecision,
  TransitionRequest,
  TransitionResult,
} from '../contracts/ports/run-store.port.js';
import { withPendingInterrupt } from './interrupt-request.js';
import type { LifecyclePublisher } from './lifecycle-publisher.js';

/** The entries that a transition appends; null when it leaves the run alone. */
export type PublishedDecision = TransitionDecision<JournalEntry[] | null>;

/**
 * The one way by which anybody but a run's owner moves it: the decision is applied under the lock, and what was committed is published, the next run of the
 * session included.
 */
export async function publishedTransition(
  store: RunStore,
  publisher: LifecyclePublisher,
  request: Omit<TransitionRequest<JournalEntry[] | null>, 'decide'> & {
    decide: (locked: LockedRun) => PublishedDecision;
  },
): Promise<TransitionResult<JournalEntry[] | null>> {
  let advanced: Parameters<LifecyclePublisher['advanced']>[0] | null = null;
  const answer = await store.transition<JournalEntry[] | null>({
    ...request,
    decide: (locked) => {
      const decision = withPendingInterrupt(locked, request.decide(locked));
      advanced = { locked, decision };
      return decision;
    },
  });
  if (answer.outcome !== 'done') return answer;
  const { run, result } = answer;
  if (result && result.length > 0) publisher.committed(run, run.sequence - result.length + 1, result);
  if (advanced) publisher.advanced(advanced);
  return answer;
}
