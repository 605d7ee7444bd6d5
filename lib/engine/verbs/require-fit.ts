import type { JsonObject } from '../../contracts/json.js';
import { PayloadTooLargeError } from '../../errors/request.errors.js';
import { jsonBytes } from '../values/commit-size.js';

/**
 * What a caller gives is measured as it will be stored, where it comes in: what is accepted can be committed.
 * @param subject of the message, e.g. `The prompt`
 * @throws PayloadTooLargeError with both sizes
 */
export function requireFit(subject: string, given: unknown, maxPayloadBytes: number, details: JsonObject = {}): void {
  const bytes = jsonBytes(given);
  if (bytes <= maxPayloadBytes) return;
  throw new PayloadTooLargeError(
    `${subject} has ${bytes} bytes of JSON; maxPayloadBytes allows ${maxPayloadBytes}. Send less, or refer to where it is stored.`,
    { details: { ...details, bytes, maxPayloadBytes } },
  );
}
