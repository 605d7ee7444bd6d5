/**
 * What the model is told of a refusal: the text of an HttpException, which was written for callers; anything else (a database error inside a guard) is kept
 * as the cause only.
 */
export function refusalText(error: unknown, fallback: string): string {
  const getResponse = (error as { getResponse?: unknown } | null | undefined)?.getResponse;
  if (typeof getResponse !== 'function') return fallback;
  const response = (getResponse as () => unknown).call(error);
  const message: unknown =
    typeof response === 'object' && response !== null ? (response as { message?: unknown }).message : response;
  if (Array.isArray(message)) return message.map(String).join('; ');
  return typeof message === 'string' && message !== '' ? message : fallback;
}
