/** Reads a run's journal from a sequence to its end, page by page, and folds it. */
import type { Message } from '../../contracts/message.js';
import type { RunStore } from '../../contracts/ports/run-store.port.js';
import type { RunRecord } from '../../contracts/run.js';
import { JournalCorruptError } from '../../errors/store/journal-corrupt.error.js';
import type { JournalFold } from './fold-journal.js';
import { emptyState, type RunState } from './run-state.js';

const PAGE = 1_000;

/**
 * Continues a state to the end of the journal.
 * @returns the run as it was when the last page was read; null when it does not exist
 * @throws JournalCorruptError when the entries cannot be folded
 */
export async function catchUp(store: RunStore, fold: JournalFold, state: RunState): Promise<RunRecord | null> {
  for (;;) {
    const page = await store.readJournal(state.runId, state.sequence, PAGE);
    if (!page) return null;
    try {
      fold.replay(state, page.entries);
    } catch (cause) {
      throw new JournalCorruptError(
        `The journal of run ${state.runId} cannot be folded: ${cause instanceof Error ? cause.message : String(cause)}`,
        { cause, details: { runId: state.runId } },
      );
    }
    if (page.entries.length < PAGE) return page.run;
  }
}

/** The whole of a run without its session's history. Null when it does not exist. */
export async function readRunState(
  store: RunStore,
  fold: JournalFold,
  runId: string,
  history: readonly Message[] = [],
): Promise<{ run: RunRecord; state: RunState } | null> {
  const state = emptyState(runId);
  fold.begin(state, history);
  const run = await catchUp(store, fold, state);
  return run && { run, state };
}
