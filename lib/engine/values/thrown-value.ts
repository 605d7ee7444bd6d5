/**
 * Reads an exception that may be anything: `throw undefined`, a Proxy, an Error whose message is a number or whose
 * getter throws. Never throws itself, and looks at nothing but the property it is asked for.
 */

/** One property of a thrown value; undefined when it cannot be read. */
export function thrownProperty(thrown: unknown, property: string): unknown {
  if ((typeof thrown !== 'object' && typeof thrown !== 'function') || thrown === null) return undefined;
  try {
    return (thrown as Record<string, unknown>)[property];
  } catch {
    return undefined;
  }
}

/** The words of a thrown value, unbounded; never its serialised form. */
export function thrownMessage(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown === '' ? 'An empty text was thrown.' : thrown;
  if (thrown === null || thrown === undefined) return `${String(thrown)} was thrown.`;
  if (typeof thrown !== 'object' && typeof thrown !== 'function') return `${String(thrown)} was thrown.`;
  const message = thrownProperty(thrown, 'message');
  if (typeof message === 'string' && message !== '') return message;
  if (['number', 'boolean', 'bigint', 'symbol'].includes(typeof message)) return String(message);
  return message === ''
    ? 'An error without a message was thrown.'
    : `${typeof thrown === 'function' ? 'A function' : 'An object'} without a message was thrown.`;
}
