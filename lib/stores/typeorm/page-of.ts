import type { Page } from '../../contracts/ports/run-store.port.js';
import { cursorAfter, type ListName, type Places } from '../../contracts/page-cursor.js';

/** A page of what was found, which is one row more than its limit where there is a next one. */
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
