import { isRecord, type JsonObject, type JsonValue } from '../../contracts/json.js';
import { type Field, type FieldDoc } from '../../contracts/schema.js';
import { PayloadTooLargeError } from '../../errors/request.errors.js';
import { jsonBytes } from '../values/json-domain.js';
import { normaliseResult } from '../values/normalise-result.js';

/** Of a value that has no limit of its own yet. A list that claims billions of items is refused, not walked. */
const MAX_JSON_BYTES = 2 ** 30;

/**
 * Any JSON value, as a copy. A number that a parser on the way may have rounded is refused: over HTTP the host's parser
 * has read the body, and what its text said cannot be known any more.
 */
export function json(doc: FieldDoc = {}, maxBytes = MAX_JSON_BYTES): Field<JsonValue> {
  return {
    doc,
    judgesUndefined: true,
    read: (value, report) => {
      const read = normaliseResult(value, { maxBytes, exactNumbers: true });
      return read.ok ? read.value : report(`cannot be stored: ${read.path} ${read.problem}`);
    },
  };
}

export function jsonObject(doc: FieldDoc = {}, maxBytes = MAX_JSON_BYTES): Field<JsonObject> {
  const any = json(doc, maxBytes) as Field<JsonObject>;
  return {
    doc: { type: 'object', additionalProperties: true, ...doc },
    read: (value, report) => (isRecord(value) ? any.read(value, report) : report('must be an object')),
  };
}

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
