/**
 * The one place where stores turn values into text and back. What belongs to the content of a run (prompts, entries,
 * messages, outputs, interactions) passes {@link encodePayload} and {@link decodePayload}; metadata does not, since
 * lists select by it.
 *
 * The text is JSON whose escapes keep lone surrogates and NUL (RFC 8259), so that no database sees a character it
 * refuses. Whatever a codec makes of it has to be JSON text as well.
 * @param runId the run that the payload belongs to
 * @param field where it is stored, e.g. `entries`
 */
export function encodePayload(_runId: string, _field: string, value: unknown): string {
  return JSON.stringify(value);
}

/** @throws SyntaxError for a text that {@link encodePayload} did not make */
export function decodePayload(_runId: string, _field: string, text: string): unknown {
  return JSON.parse(text);
}

/** Text of what is no payload: totals, offers, the parameters of a statement, files of a store's own. */
export function toJson(value: unknown): string {
  return JSON.stringify(value);
}

/** @throws SyntaxError */
export function fromJson(text: string): unknown {
  return JSON.parse(text);
}

/**
 * A detached copy by the rules of JSON: nothing that a caller holds is ever the same object as something stored.
 * `__proto__` stays an own key, lone surrogates and NUL survive, `undefined` fields are dropped.
 */
export function detached<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
