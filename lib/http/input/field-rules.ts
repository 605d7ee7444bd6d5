/** What fields of several bodies and queries have in common. */
import { IDENTIFIER_PATTERN } from '../../contracts/identifier.js';

export const IDENTIFIER = { test: IDENTIFIER_PATTERN, words: 'must be 1 to 128 characters of A-Z a-z 0-9 . _ : -' };

/** Page size of a list. */
export const MAX_LIST = 100;

/** Of reasons and notes, in UTF-16 units; what is longer is refused, never cut. */
export const MAX_NOTE = 4_000;

/** Of an agent's name, as agents are registered. */
export const MAX_NAME = 128;

export const MAX_CURSOR = 1_000;
