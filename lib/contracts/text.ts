/**
 * Anything but white space, controls and characters that Unicode says to ignore in display (zero-width space, joiners,
 * byte order mark …).
 */
const VISIBLE = /[^\s\p{Cc}\p{Default_Ignorable_Code_Point}]/u;

/** Whether a text has nothing to read in it. Providers refuse such a block, `trim()` does not see them all. */
export function isBlankText(text: string): boolean {
  return !VISIBLE.test(text);
}

declare const brand: unique symbol;

/**
 * Text of an error or a reason that may be stored, shown and sent to the model: masked, well-formed and bounded. Only
 * `recordedText` in `engine/values/recorded-error.ts` makes one, so that no text of an exception gets past it; to
 * its readers it is a string.
 */
export type RecordedText = string & { readonly [brand]: 'recorded' };

export const MAX_IDENTIFIER = 128;

/**
 * Ids that callers give: run, session and request ids, metadata keys. ASCII, so that every database compares them
 * alike.
 */
export const IDENTIFIER_PATTERN = new RegExp(`^[A-Za-z0-9._:-]{1,${MAX_IDENTIFIER}}$`);

export function isIdentifier(value: unknown): value is string {
  return typeof value === 'string' && IDENTIFIER_PATTERN.test(value);
}
