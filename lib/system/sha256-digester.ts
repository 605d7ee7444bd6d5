/** Canonical text by RFC 8785 and SHA-256 (port Digester). */
import { hash } from 'node:crypto';
import canonicalizeModule from 'canonicalize';
import type { Digester } from '../contracts/ports/system.port.js';

// A CommonJS function whose typings describe an ES module: the default import is the function itself in both of our formats.
const canonicalize = canonicalizeModule as unknown as (value: unknown) => string;

export class Sha256Digester implements Digester {
  /**
   * A lone surrogate, which RFC 8785 leaves out, is written as its escape: such texts differ from each other and from U+FFFD.
   * @throws Error for a number that is not finite: it is no JSON
   */
  canonical(value: unknown): string {
    return canonicalize(value);
  }

  digest(text: string): string {
    return hash('sha256', text, 'hex');
  }
}
