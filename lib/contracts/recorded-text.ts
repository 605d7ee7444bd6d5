declare const brand: unique symbol;

/**
 * Text of an error or a reason that may be stored, shown and sent to the model: masked, well-formed and bounded. Only `recordedText` in
 * `engine/values/recorded-error.ts` makes one, so that no text of an exception gets past it; to whoever reads it, it is a string.
 */
export type RecordedText = string & { readonly [brand]: 'recorded' };
