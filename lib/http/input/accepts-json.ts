/** Whether `Accept` allows JSON (RFC 9110 section 12.5.1): the most specific range that fits decides; without the header anything goes. */
export function acceptsJson(accept: string | string[] | undefined): boolean {
  const given = [accept ?? ''].flat().join(',');
  if (given.trim() === '') return true;
  const weights = new Map<string, number>();
  for (const range of given.split(',')) {
    const [mediaType = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    weights.set(mediaType, quality === undefined ? 1 : Number(quality) || 0);
  }
  const weight = weights.get('application/json') ?? weights.get('application/*') ?? weights.get('*/*') ?? 0;
  return weight > 0;
}
