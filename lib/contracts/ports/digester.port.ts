/** Canonical text and digests for the engine. */

export interface Digester {
  /** RFC 8785 canonical JSON: key order does not matter. @param value JSON, of whatever interface */
  canonical(value: unknown): string;
  /** SHA-256 of the UTF-8 text, hex. */
  digest(text: string): string;
}
