/**
 * Those who wait for a batch are told in slices, with a turn of the event loop in between: while the next slice computes, what the first one has handed in is
 * already on its way. Told all at once they would compute all at once, and then all wait for the database, in turns.
 */
const SLICE = 32;

/** Resolves when all of them are told. */
export async function inSlices<T>(items: readonly T[], tell: (item: T, index: number) => void): Promise<void> {
  for (const [index, item] of items.entries()) {
    if (index > 0 && index % SLICE === 0) await new Promise((next) => setImmediate(next));
    tell(item, index);
  }
}
