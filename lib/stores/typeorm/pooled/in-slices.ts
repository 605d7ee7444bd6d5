/**
 * Those who wait for a batch are told in slices: while the next slice computes, what the first one has handed in is already on its way. Told all at once they
 * would compute all at once, and then all wait for the database, in turns.
 */

/** A batch costs as much as several members of it. */
const SMALLEST = 16;

/** @param slices as many as there may be batches on their way. Resolves when all are told. */
export async function inSlices<T>(
  items: readonly T[],
  slices: number,
  tell: (item: T, index: number) => void,
): Promise<void> {
  const size = Math.max(SMALLEST, Math.ceil(items.length / slices));
  for (const [index, item] of items.entries()) {
    if (index > 0 && index % size === 0) await sent();
    tell(item, index);
  }
}

/** What was handed in meanwhile is sent in the next turn of the event loop, and this resolves in the one after it. */
async function sent(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) await new Promise((next) => setImmediate(next));
}
