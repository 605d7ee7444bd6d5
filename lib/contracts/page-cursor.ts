import type { Page } from './ports/run-store.port.js';
import { InvalidCursorError } from '../errors/request.errors.js';

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

/** What ids and places are made of. Anything else is in no row, and databases fail on some of it. */
const PLACE_TEXT = /^[\x21-\x7e]{1,400}$/;

/**
 * Cursors of lists: the place of the last row shown, so that rows that come and go elsewhere move nothing. Opaque to
 * callers.
 */
export function cursorAfter<L extends ListName>(list: L, place: Places[L]): string {
  const values = FIELDS[list].map((field) => place[field]);
  return btoa(JSON.stringify([list, ...values]))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}

/** @throws InvalidCursorError for a text that {@link cursorAfter} did not give for this list */
export function placeOf<L extends ListName>(list: L, cursor: string): Places[L] {
  try {
    const [name, createdAt, ...texts] = JSON.parse(atob(cursor.replaceAll('-', '+').replaceAll('_', '/'))) as unknown[];
    const values = [createdAt, ...texts];
    const isPlace =
      Number.isSafeInteger(createdAt) && texts.every((text) => typeof text === 'string' && PLACE_TEXT.test(text));
    if (name === list && isPlace && values.length === FIELDS[list].length) {
      const place = Object.fromEntries(FIELDS[list].map((field, index) => [field, values[index]])) as Places[L];
      // Decoding forgives spaces and padding: only the very text counts.
      if (cursorAfter(list, place) === cursor) return place;
    }
  } catch {
    // Told below.
  }
  throw new InvalidCursorError(
    `This cursor was not given by the list of ${list}. Use \`nextCursor\` of the page before.`,
  );
}

/**
 * A page of what was found, in the order of its list.
 * @param found one more than the limit where there is a next page
 */
export function pageOf<L extends ListName, Item>(
  list: L,
  found: readonly Item[],
  limit: number,
  placed: (item: Item) => Places[L],
): Page<Item> {
  const items = found.slice(0, limit);
  const last = items.at(-1);
  return last && found.length > items.length ? { items, nextCursor: cursorAfter(list, placed(last)) } : { items };
}
