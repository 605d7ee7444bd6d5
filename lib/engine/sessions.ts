/**
 * Sessions: one run at a time, first in first out (I6), and a history that is a pointer, never a copy.
 * The advance is part of the transaction in which a run leaves its session; the store locks the session before the run.
 */
import type { Message } from '../contracts/message.js';
import type { LockedRun, RunStore, RunWrite } from '../contracts/ports/run-store.port.js';
import type { RunRecord, SessionChange } from '../contracts/run.js';
import type { JournalFold } from './journal/fold-journal.js';
import { readRunState } from './journal/read-whole-journal.js';
import { changeStatus } from './transitions.js';

/**
 * What settling a run does to its session.
 * @param completed whether the run joins the history
 */
export function advanceSession(
  locked: LockedRun,
  completed: boolean,
): { session?: SessionChange; nextInSession?: RunWrite } {
  const { session, run, nextInSession: next, now } = locked;
  if (!session) return {};
  const latestCompletedRunId = completed ? run.id : session.latestCompletedRunId;
  const joins = completed ? { latestCompletedRunId } : {};
  if (session.headRunId !== run.id) return completed ? { session: joins } : {};
  if (!next) return { session: { ...joins, headRunId: null } };
  return {
    session: { ...joins, headRunId: next.id, startedOrder: next.sessionOrder ?? session.startedOrder },
    nextInSession: changeStatus(next, 'dequeue', [{ type: 'run.dequeued', at: now, afterRunId: run.id }], {
      historyRunId: latestCompletedRunId,
      historyCaptured: true,
      wake: { cause: 'submitted' },
    }),
  };
}

/** What a run sees before its own messages. */
export interface SessionHistory {
  /** Of the completed run it points to, and of those before it, oldest first. */
  messages: Message[];
  /** The run it points to. */
  latest: RunRecord | null;
  /** How many runs it is made of. */
  runs: number;
}

export async function readHistory(
  store: RunStore,
  fold: JournalFold,
  historyRunId: string | null,
): Promise<SessionHistory> {
  const chunks: Message[][] = [];
  let latest: RunRecord | null = null;
  for (let id = historyRunId; id !== null;) {
    const earlier = await readRunState(store, fold, id);
    if (!earlier) break;
    latest ??= earlier.run;
    chunks.push(earlier.state.messages);
    id = earlier.run.precedingRunId;
  }
  return { messages: chunks.reverse().flat(), latest, runs: chunks.length };
}
