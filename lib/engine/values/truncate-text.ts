/**
 * Shortens text for errors, previews and log lines. Cuts between code points, never inside a surrogate pair, and marks
 * the cut with `…`.
 * @param maxCodePoints the length of the result at most, the mark included; at least 1
 */
export function truncateText(text: string, maxCodePoints: number): string {
  // A text of n UTF-16 units has at most n code points.
  if (text.length <= maxCodePoints) return text;
  let units = 0;
  let cut = 0;
  for (let count = 0; units < text.length; count++) {
    if (count === maxCodePoints) return `${text.slice(0, cut)}…`;
    if (count === maxCodePoints - 1) cut = units;
    units += (text.codePointAt(units) as number) > 0xffff ? 2 : 1;
  }
  return text;
}
