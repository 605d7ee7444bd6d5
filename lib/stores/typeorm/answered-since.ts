/**
 * Since when a run waits for people who have nothing left to answer (I11). The store keeps it on the run's row, in the transaction that changes the run or its
 * asks: the sweeps find such runs, of which there are hardly ever any, without a look at those that wait rightly.
 */
import type { Interaction } from '../../contracts/interaction.js';
import type { RunRecord } from '../../contracts/run.js';

/** @returns epoch ms; null for a run that waits for something, or not at all */
export function answeredSince(
  { status, waitingFor }: Pick<RunRecord, 'status' | 'waitingFor'>,
  asks: readonly Pick<Interaction, 'status'>[],
  now: number,
): number | null {
  const isForPeople = waitingFor.every((reason) => reason === 'approval' || reason === 'question');
  return status === 'waiting' && isForPeople && asks.every((ask) => ask.status !== 'pending') ? now : null;
}

/** Asks of a run after some of them were written. */
export function asksAfter(before: readonly Interaction[], written: readonly Interaction[] = []): Interaction[] {
  const ids = new Set(written.map(({ id }) => id));
  return [...before.filter(({ id }) => !ids.has(id)), ...written];
}
