/** Which form of a run's events a client wants (RFC 9110 section 12.5.1). JSON must be asked for; a stream is the default. */
export type EventForm = 'json' | 'stream';

export function acceptedForm(accept: string | string[] | undefined): EventForm {
  const weights = new Map<string, number>();
  for (const range of [accept ?? ''].flat().join(',').split(',')) {
    const [mediaType = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const quality = parameters.find((parameter) => /^q=/.test(parameter))?.slice(2);
    weights.set(mediaType, quality === undefined ? 1 : Number(quality) || 0);
  }
  const json = weights.get('application/json') ?? weights.get('application/*') ?? 0;
  const stream = weights.get('text/event-stream') ?? weights.get('text/*') ?? 0;
  return json > 0 && json >= stream ? 'json' : 'stream';
}
