/** The changes of a commit as JSON text and back. Entries go in as the text they are already: nothing is serialised twice on the way to disk. */
import type { ImageChange } from '../image/image-change.js';

export function commitText(changes: readonly ImageChange[]): string {
  return `[${changes.map(changeText).join(',')}]`;
}

function changeText(change: ImageChange): string {
  if (change.kind !== 'journal') return JSON.stringify(change);
  const { entries, ...rest } = change.row;
  return `{"kind":"journal","runId":${JSON.stringify(change.runId)},"row":{"entries":${entries},${JSON.stringify(rest).slice(1)}}`;
}

/** @param value a change as parsed from {@link commitText} */
export function changeOf(value: unknown): ImageChange {
  const change = value as ImageChange;
  if (change.kind !== 'journal') return change;
  return { ...change, row: { ...change.row, entries: JSON.stringify(change.row.entries) } };
}
