/** Cursors of lists: the place of the last row shown, so that rows that come and go elsewhere move nothing. Opaque to callers. */
import { InvalidCursorError } from '../../errors/request/invalid-cursor.error.js';

/** What the rows of a list are sorted by, in this order. */
export interface Places {
  runs: { createdAt: number; id: string };
  interactions: { createdAt: number; runId: string; place: string; id: string };
}

export type ListName = keyof Places;

const FIELDS: { readonly [L in ListName]: readonly (keyof Places[L])[] } = {
  runs: ['createdAt', 'id'],
  interactions: ['createdAt', 'runId', 'place', 'id'],
};

export function cursorAfter<L extends ListName>(list: L, place: Places[L]): string {
  const values = FIELDS[list].map((field) => place[field]);
  return Buffer.from(JSON.stringify([list, ...values])).toString('base64url');
}

/** @throws InvalidCursorError for a text that {@link cursorAfter} did not give for this list */
export function placeOf<L extends ListName>(list: L, cursor: string): Places[L] {
  try {
    const [name, createdAt, ...texts] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[];
    const values = [createdAt, ...texts];
    const isPlace = Number.isSafeInteger(createdAt) && texts.every((text) => typeof text === 'string');
    if (name === list && isPlace && values.length === FIELDS[list].length) {
      const place = Object.fromEntries(FIELDS[list].map((field, index) => [field, values[index]])) as Places[L];
      // Base64 decoding skips what it does not know: only the very text counts.
      if (cursorAfter(list, place) === cursor) return place;
    }
  } catch {
    // Told below.
  }
  throw new InvalidCursorError(
    `This cursor was not given by the list of ${list}. Use \`nextCursor\` of the page before.`,
  );
}
