/** Cursors of lists: the place after the last row shown, so that rows that come and go elsewhere move nothing (STO-8). Opaque to callers. */
import { InvalidCursorError } from '../../errors/request/invalid-cursor.error.js';

export type ListName = 'runs' | 'interactions';

export interface Place {
  createdAt: number;
  id: string;
}

export function cursorAfter(list: ListName, place: Place): string {
  return Buffer.from(JSON.stringify([list, place.createdAt, place.id])).toString('base64url');
}

/** @throws InvalidCursorError for a text that {@link cursorAfter} did not give for this list */
export function placeOf(list: ListName, cursor: string): Place {
  try {
    const [name, createdAt, id, ...rest] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[];
    if (name === list && Number.isSafeInteger(createdAt) && typeof id === 'string' && rest.length === 0) {
      const place = { createdAt: createdAt as number, id };
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
