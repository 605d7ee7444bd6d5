import type { SequencedEntry } from '../../contracts/journal-entry.js';
import type { Message } from '../../contracts/message.js';
import type { RunStore } from '../../contracts/ports/run-store.port.js';
import type { RunRecord } from '../../contracts/run.js';
import { JournalCorruptError } from '../../errors/store.errors.js';
import { RunNotFoundError } from '../../errors/request.errors.js';
import type { JournalFold } from './fold-journal.js';
import { emptyState, type RunState } from './run-state.js';

const PAGE = 1_000;

/**
 * Continues a state to the end of the journal, or to a sequence of it.
 * @returns the run as it was when the last page was read; null when it does not exist
 * @throws JournalCorruptError when the entries cannot be folded
 */
export async function catchUp(
  store: RunStore,
  fold: JournalFold,
  state: RunState,
  upTo = Number.POSITIVE_INFINITY,
): Promise<RunRecord | null> {
  for (;;) {
    const limit = Math.min(PAGE, upTo - state.sequence);
    const page = await store.readJournal(state.runId, state.sequence, limit);
    if (!page) return null;
    const { entries, run } = page;
    const before = state.sequence;
    const misplaced = entries.findIndex(({ sequence }, index) => sequence !== before + 1 + index);
    if (misplaced >= 0) throw corrupt(state.runId, `${misplaced + before + 1} is missing or there twice`);
    replay(fold, state, entries);
    // Readers stop at a gap. A run continued from there would do again what the lost entries say was done.
    if (entries.length < limit && state.sequence < run.sequence)
      throw corrupt(state.runId, `it ends at ${state.sequence}, though the run stands at ${run.sequence}`);
    if (entries.length < limit || state.sequence >= upTo) return run;
  }
}

function replay(fold: JournalFold, state: RunState, entries: readonly SequencedEntry[]): void {
  try {
    fold.replay(state, entries);
  } catch (cause) {
    throw corrupt(state.runId, cause instanceof Error ? cause.message : String(cause), cause);
  }
}

function corrupt(runId: string, why: string, cause?: unknown): JournalCorruptError {
  return new JournalCorruptError(`The journal of run ${runId} cannot be folded: ${why}.`, {
    cause,
    details: { runId },
  });
}

function begun(fold: JournalFold, runId: string, history: readonly Message[] = []): RunState {
  const state = emptyState(runId);
  fold.begin(state, history);
  return state;
}

/** The run and its folded journal, behind the history that is given. Null when it does not exist. */
export async function readRunState(
  store: RunStore,
  fold: JournalFold,
  runId: string,
  history: readonly Message[] = [],
  upTo?: number,
): Promise<{ run: RunRecord; state: RunState } | null> {
  const state = begun(fold, runId, history);
  const run = await catchUp(store, fold, state, upTo);
  return run && { run, state };
}

/** Commits that one statement reads of several journals. */
const COMMITS = 500;

/**
 * The folded journals of several runs, without any history, by as few statements as their length allows.
 * @returns in the order of the ids; null for a run that does not exist
 * @throws JournalCorruptError
 */
export async function readRunStates(
  store: RunStore,
  fold: JournalFold,
  runIds: readonly string[],
): Promise<(RunState | null)[]> {
  const states = runIds.map((runId) => begun(fold, runId));
  const whole = new Set<string>();
  // One alone is read by its own statement just as well.
  let pending = states.length > 1 ? states : [];
  while (pending.length > 0) {
    const positions = pending.map(({ runId, sequence }) => ({ runId, after: sequence }));
    const news = await store.follow(positions, COMMITS);
    const ended = new Set<string>();
    for (const { runId, entries, isComplete } of news) {
      const state = pending.find((one) => one.runId === runId) as RunState;
      // A gap is left to the reader of that journal alone, who tells it.
      const isNext = entries.every(({ sequence }, index) => sequence === state.sequence + 1 + index);
      if (isNext) replay(fold, state, entries);
      if (isNext && isComplete) whole.add(runId);
      if (!isNext || isComplete) ended.add(runId);
    }
    pending = news.every(({ isComplete }) => isComplete) ? [] : pending.filter(({ runId }) => !ended.has(runId));
  }
  return Promise.all(
    states.map(async (state) => (whole.has(state.runId) || (await catchUp(store, fold, state)) ? state : null)),
  );
}

/** As {@link readRunState}, for a run that a caller names. @throws RunNotFoundError */
export async function requireRunState(
  store: RunStore,
  fold: JournalFold,
  runId: string,
  upTo?: number,
): Promise<{ run: RunRecord; state: RunState }> {
  const read = await readRunState(store, fold, runId, [], upTo);
  if (!read) throw runNotFound(runId);
  return read;
}

export function runNotFound(runId: string): RunNotFoundError {
  return new RunNotFoundError(`There is no run ${runId}.`, { details: { runId } });
}
