export const MAX_IDENTIFIER = 128;

/** Ids that callers give: run, session and request ids, metadata keys. ASCII, so that every database compares them alike. */
export const IDENTIFIER_PATTERN = new RegExp(`^[A-Za-z0-9._:-]{1,${MAX_IDENTIFIER}}$`);

export function isIdentifier(value: unknown): value is string {
  return typeof value === 'string' && IDENTIFIER_PATTERN.test(value);
}
