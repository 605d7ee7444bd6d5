/** Anything but white space, controls and characters that Unicode says to ignore in display (zero-width space, joiners, byte order mark …). */
const VISIBLE = /[^\s\p{Cc}\p{Default_Ignorable_Code_Point}]/u;

/** Whether a text has nothing to read in it. Providers refuse such a block, `trim()` does not see them all. */
export function isBlankText(text: string): boolean {
  return !VISIBLE.test(text);
}
