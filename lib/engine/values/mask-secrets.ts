/**
 * Last line of defence for error texts that are stored, shown and sent to the model: drivers and providers put connection strings and the
 * offending key into their messages. Masks what has the form of a credential; it cannot know a secret that looks like an ordinary word, so callers
 * choose what text they keep in the first place. Linear in the length of the text: every repetition is bounded.
 */
const MASK = '[redacted]';

const RULES: readonly (readonly [RegExp, string])[] = [
  // scheme://user:password@host
  [/\b([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s/@]{1,512}@/gi, `$1${MASK}@`],
  // Authorization schemes: a token has a digit, an upper-case letter or padding in it; a word of prose has none.
  [/\b([Bb]earer|BEARER|[Bb]asic|BASIC)\s{1,8}(?=[^\s]{0,512}[0-9=A-Z_])[A-Za-z0-9._~+/=*-]{6,4096}/g, `$1 ${MASK}`],
  // name: value and name=value, for names that mean a credential
  [
    /\b((?:proxy-)?authorization|x-api-key|api[-_ ]?key|access[-_ ]?key|access[-_ ]?token|refresh[-_ ]?token|auth[-_ ]?token|id[-_ ]?token|client[-_ ]?secret|secret[-_ ]?key|private[-_ ]?key|password|passwd|pwd)(["']?(?:\s{1,4}(?:provided|given|used|received|is|was))?\s{0,4}[:=]\s{0,4}["'`]?)(?:(?:bearer|basic)\s{1,4})?(?!\[redacted)[^\s"'`,;}\])]{3,4096}/gi,
    `$1$2${MASK}`,
  ],
  // … key|token|secret <something with a digit in it>
  [
    /\b((?:key|token|secret|credential|password)s?(?:\s{1,4}(?:provided|given|used|received))?(?:\s{0,4}[:=]\s{0,4}["'`]?|\s{1,4}))(?=[^\s]{0,512}\d)[A-Za-z0-9._~+/=*-]{8,4096}/gi,
    `$1${MASK}`,
  ],
  // Prefixes in use by providers, and JSON Web Tokens
  [
    /\b(?:sk-[\w*-]{6,4096}|[sr]k_(?:live|test)_\w{6,512}|gh[pousr]_\w{16,512}|github_pat_\w{16,512}|xox[abeprs]-[\w-]{8,512}|AIza[\w-]{20,512}|(?:AKIA|ASIA)[A-Z0-9]{12,128}|hf_\w{16,512}|gsk_\w{16,512})/g,
    MASK,
  ],
  [/\beyJ[\w-]{8,8192}\.[\w-]{4,8192}(?:\.[\w-]{0,8192})?/g, MASK],
];

/** The text with everything that has the form of a credential replaced by `[redacted]`. */
export function maskSecrets(text: string): string {
  return RULES.reduce((masked, [pattern, replacement]) => masked.replace(pattern, replacement), text);
}
