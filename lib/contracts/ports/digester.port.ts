/** Canonical text and digests for the engine. */
import type { JsonValue } from '../json.js';

export interface Digester {
  /** RFC 8785 canonical JSON: key order does not matter. */
  canonical(value: JsonValue): string;
  /** SHA-256 of the UTF-8 text, hex. */
  digest(text: string): string;
}
