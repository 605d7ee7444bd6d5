import type { Interaction } from '../../contracts/interaction.js';
import type { JournalEntry } from '../../contracts/journal-entry.js';
import type { LockedRun, RunWrites } from '../../contracts/ports/run-store.port.js';
import type { WaitReason } from '../../contracts/run-status.js';
import type { EngineOptions } from '../engine-ports.js';
import { decidedEntry, finishesCall } from '../interactions.js';
import type { RunState } from '../journal/run-state.js';
import { becomePending, NOTHING } from '../transitions.js';
import type { RunChange, RunRecord } from '../../contracts/run.js';

export function hasBudgetLeft(run: RunRecord, limit: number | null): boolean {
  return limit === null || run.totals.usage.totalTokens < limit;
}

/**
 * What a waiting run writes when one of its reasons is gone but others are left; null when none is left.
 * @param gone the reason that has been met
 */
export function stillWaiting(
  locked: LockedRun,
  gone: WaitReason,
  entries: JournalEntry[],
  change: RunChange = {},
): RunWrites | null {
  const left = locked.run.waitingFor.filter((reason) => reason !== gone);
  return left.length === 0 ? null : { run: { change: { ...change, waitingFor: left }, entries } };
}

type DecidedOptions = Pick<EngineOptions, 'resumeAfterAnswers'>;

/**
 * Decisions entering a run: by a person or by time. Pure. With an owner, only the interaction's own row is written, and
 * the owner takes it up; without one, the entry and the wake-up are part of the same transaction.
 *
 * @param decided interactions that were pending under this lock, with their decisions
 */
export function takeDecisions(
  locked: LockedRun,
  state: RunState,
  decided: Interaction[],
  options: DecidedOptions,
): RunWrites {
  const { run, now } = locked;
  if (run.status === 'running') return { interactions: decided };
  const entries: JournalEntry[] = decided.map((interaction) => decidedEntry(interaction, now));
  const results = decided.filter((interaction) => finishesCall(interaction, state)).length;
  const totals = results === 0 ? {} : { totals: { ...run.totals, results: run.totals.results + results } };
  const waitingFor = leftToWaitFor(locked, decided);
  if (run.status === 'waiting' && waitingFor.length === 0 && options.resumeAfterAnswers === 'automatic') {
    const woken = becomePending(locked, 'answer', { cause: 'answered', ...byOf(decided) }, entries);
    return { run: { ...woken.run, ...totals }, interactions: decided };
  }
  const change = run.status === 'waiting' && waitingFor.length > 0 ? { waitingFor } : {};
  return { run: { change, entries, ...totals }, interactions: decided };
}

/**
 * A waiting run whose interactions are all decided, and that was not woken. Nothing else is journaled: its decisions
 * are already.
 */
export function wakeAnswered(locked: LockedRun, options: DecidedOptions): RunWrites {
  const { run, now } = locked;
  if (run.status !== 'waiting' || options.resumeAfterAnswers === 'manual' || leftToWaitFor(locked, []).length > 0)
    return NOTHING;
  return becomePending(locked, 'resume', { cause: 'answered' }, [
    { type: 'run.resume_requested', at: now, by: 'system', reason: 'all interactions were decided' },
  ]);
}

/** What the run still waits for once these are decided. */
function leftToWaitFor(locked: LockedRun, decided: Interaction[]): WaitReason[] {
  const ids = new Set(decided.map(({ id }) => id));
  const open = locked.interactions.filter(({ id, status }) => status === 'pending' && !ids.has(id));
  return locked.run.waitingFor.filter((reason) => !isPeople(reason) || open.some(({ kind }) => kind === reason));
}

function isPeople(reason: WaitReason): boolean {
  return reason === 'approval' || reason === 'question';
}

function byOf(decided: Interaction[]): { by?: string } {
  const by = decided.at(-1)?.decision?.by;
  return by === undefined ? {} : { by };
}
