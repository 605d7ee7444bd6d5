/** A transaction of an attempt, offered again until the store takes it, refuses it, or the attempt is over here (I10). */
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { RunRecord } from '../../contracts/run.js';
import { AgentRunsError } from '../../errors/agent-runs.error.js';
import type { EnginePorts } from '../engine-ports.js';
import { pendingInterruptOnce } from '../transitions.js';
import { decideExit, type ExitTransition, type ExitResult } from '../settle-run.js';
import { Backoff } from './backoff.js';

export interface Taken {
  run: RunRecord;
  result: ExitResult;
  /** The next run of the session, when it became claimable with this. */
  advanced: { run: RunRecord; firstSequence: number; entries: JournalEntry[] } | null;
}

export async function offerTransaction(
  ports: Pick<EnginePorts, 'store' | 'clock' | 'ids'>,
  target: { runId: string; session: boolean },
  leave: Omit<ExitTransition, 'owed' | 'maxCommitBytes'>,
  isOver: () => boolean,
): Promise<Taken | 'gone' | 'over'> {
  const backoff = new Backoff(ports);
  const owed = pendingInterruptOnce();
  const { maxCommitBytes } = ports.store.traits;
  while (!isOver()) {
    let advanced: Taken['advanced'] = null;
    try {
      const answer = await ports.store.transition({
        ...target,
        decide: (locked) => {
          const decision = decideExit(locked, { ...leave, pendingInterruptEntries: owed, maxCommitBytes });
          const { nextInSession: next } = locked;
          const entries = decision.nextInSession?.entries;
          advanced = next && entries ? { run: next, firstSequence: next.sequence + 1, entries } : null;
          return decision;
        },
      });
      if (answer.outcome !== 'done') return 'gone';
      if (answer.result.outcome !== 'too_early') return { run: answer.run, result: answer.result, advanced };
    } catch (error) {
      if (!AgentRunsError.is(error) || error.family !== 'store' || !error.retryable) throw error;
    }
    await backoff.wait();
  }
  return 'over';
}
