/** Bytes of a value as JSON text. */
export function jsonBytes(value: unknown): number {
  return new TextEncoder().encode(JSON.stringify(value)).length;
}

/**
 * How many of these, in order, one commit or page takes beside what it holds already. Of one that is empty at least
 * one: it was let in by itself, and waiting would not make it smaller.
 */
export function countThatFits(items: readonly unknown[], beside: readonly unknown[], maxBytes = Infinity): number {
  if (maxBytes === Infinity) return items.length;
  let room = maxBytes - (beside.length === 0 ? 0 : jsonBytes(beside));
  for (const [index, item] of items.entries()) {
    room -= jsonBytes(item) + 1;
    if (room < 0 && (index > 0 || beside.length > 0)) return index;
  }
  return items.length;
}
