/**
 * What the model is told of a refusal: the text of an HttpException, which was written for callers; anything else (a database error inside a guard) is kept
 * as the cause only.
 */
export function refusalText(error: unknown, fallback: string): string {
  try {
    const response: unknown = (error as { getResponse?: () => unknown } | null | undefined)?.getResponse?.();
    const message: unknown =
      typeof response === 'object' && response !== null ? (response as { message?: unknown }).message : response;
    if (Array.isArray(message)) return message.map(String).join('; ');
    return typeof message === 'string' && message !== '' ? message : fallback;
  } catch {
    return fallback;
  }
}
