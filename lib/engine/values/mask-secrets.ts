const MASK = '[redacted]';

/**
 * The text with everything that has the form of a credential replaced by `[redacted]`: the last line of defence for
 * error texts that are stored, shown, logged or sent to the model. Drivers and providers put connection strings and the
 * offending key into their messages. It cannot know a secret that looks like an ordinary word, so callers choose what
 * text they keep in the first place.
 *
 * Linear in the length of the text: every pass consumes what it has looked at.
 */
export function maskSecrets(text: string): string {
  return maskNamedValues(maskUserInfo(text.replace(PRIVATE_KEY, MASK)))
    .replace(KNOWN_PREFIX, MASK)
    .replace(JSON_WEB_TOKEN, (token) => (token.includes('.') ? MASK : token));
}

const PRIVATE_KEY = /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,60}-----|$)/g;
const KNOWN_PREFIX =
  /\b(?:sk-[\w*-]{6,}|[prs]k_(?:live|test)_\w{6,}|gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{8,}|xapp-[\w-]{8,}|AIza[\w-]{20,}|ya29\.[\w-]{16,}|(?:AKIA|ASIA)[A-Z0-9]{12,}|hf_\w{16,}|gsk_\w{16,}|xai-\w{16,}|npm_\w{16,}|pypi-[\w-]{16,}|SG\.[\w.-]{16,}|shp(?:at|ss|pa)_\w{16,}|whsec_\w{16,})/g;
const JSON_WEB_TOKEN = /\beyJ[\w-]{8}[\w.-]*/g;

/** `scheme://user:password@host`. A password may hold `/`, `?` or `#` unescaped, a path may hold an `@`. */
function maskUserInfo(text: string): string {
  let masked = '';
  let kept = 0;
  for (let at = text.indexOf('://'); at >= 0; at = text.indexOf('://', at)) {
    at += 3;
    const authority = matchAt(/[^\s"'`<>/?#]*/y, text, at);
    const userInfo = /:(?!\d{1,5}$)/.test(authority) ? matchAt(/[^\s"'`<>]{0,256}/y, text, at) : authority;
    const length = userInfo.lastIndexOf('@');
    if (length > 0) {
      masked += text.slice(kept, at) + MASK;
      kept = at += length;
    }
  }
  return masked + text.slice(kept);
}

/** How a name says that its value is a credential. */
type NameKind = 'strong' | 'weak' | 'header' | 'scheme';

const HEADER = /(?:authorization|cookie)$/;
const STRONG =
  /(?:password|passwd|pwd|passphrase|secret|(?:api|access|secret|private|signing|encryption|master|account|subscription|auth|shared)key|(?:access|refresh|auth|id|api|bearer|session|csrf|security)token|credentials?|connectionstring|signature)$/;
/** Whole words, at the end of a name of several: `SMTP_PASS`, `botToken`. */
const STRONG_LAST_WORD = /(?:[_.-](?:pass|pw|token|PASS|PW|TOKEN)|[a-z](?:Pass|Token))$/;
const STRONG_WORD = /^(?:pass|pw)$/;
const WEAK = /(?:key|token|secret|credential|password)s?$/;
const SCHEME = /^(?:bearer|basic)$/;

function kindOfName(before: string, word: string): NameKind | null {
  const name = word.slice(-80).replace(/[_.-]{1,80}$/, '');
  const flat = name.toLowerCase().replaceAll(/[_.-]/g, '');
  if (HEADER.test(flat)) return 'header';
  if (STRONG.test(flat) || STRONG_LAST_WORD.test(name) || STRONG_WORD.test(flat)) return 'strong';
  if (before !== '' && STRONG.test(before + flat)) return 'strong';
  if (SCHEME.test(flat)) return 'scheme';
  return WEAK.test(flat) ? 'weak' : null;
}

/** `name: value`, `NAME=value`, `"name": "a value"`, `--name value`, `<name>value<`, `Bearer value`, `key value1`. */
function maskNamedValues(text: string): string {
  const names = /[\w.-]+/g;
  let masked = '';
  let kept = 0;
  let before = { flat: '', end: -1 };
  // A value without a digit is no secret of a weak name; it is not read again for each name inside it.
  let withoutDigit = 0;
  for (let found = names.exec(text); found; found = names.exec(text)) {
    const word = found[0];
    const end = names.lastIndex;
    const kind = kindOfName(before.end === found.index - 1 ? before.flat : '', word);
    const value = kind && valueAfter(text, found.index, end, kind, withoutDigit);
    if (value && value.isSecret) {
      masked += text.slice(kept, value.start) + MASK;
      kept = names.lastIndex = value.end;
    } else if (value) withoutDigit = value.end;
    before = { flat: word.length > 20 ? '' : word.toLowerCase(), end };
  }
  return masked + text.slice(kept);
}

interface FoundValue {
  start: number;
  end: number;
  isSecret: boolean;
}

const ASSIGNMENT =
  /["'`\\\]]{0,4}(?:[ \t]{1,4}(?:provided|given|used|received|is|was))?[ \t]{0,4}(?:=>|[:=])[ \t]{0,4}/y;
const SPACE = /(?:[ \t]{1,4}(?:provided|given|used|received))?[ \t]{1,4}/y;
const OPENING_QUOTE = /\\{0,3}["'`]/y;
const TOKEN = /[A-Za-z0-9._~+/=*-]+/y;
const HEADER_PARAMETER = String.raw`[\w-]{1,60}=(?:"[^"\n]{0,4096}"|[^\s,"]*)`;
const HEADER_VALUE = new RegExp(
  String.raw`(?:[A-Za-z][\w-]{0,40}[ \t]{1,4})?(?:${HEADER_PARAMETER}|[^\s"'\x60,]+)(?:,[ \t]{0,4}${HEADER_PARAMETER})*`,
  'y',
);

function valueAfter(
  text: string,
  nameStart: number,
  nameEnd: number,
  kind: NameKind,
  withoutDigit: number,
): FoundValue | null {
  const name = text.slice(nameStart, nameEnd);
  const assignment = kind === 'scheme' ? '' : matchAt(ASSIGNMENT, text, nameEnd);
  const isMarkup = text[nameStart - 1] === '<' && text[nameEnd] === '>';
  const isFlag = kind === 'strong' && name.startsWith('--');
  const separator = assignment || (isMarkup ? '>' : kind === 'header' ? '' : matchAt(SPACE, text, nameEnd));
  if (separator === '') return null;
  const quote = assignment || isFlag ? matchAt(OPENING_QUOTE, text, nameEnd + separator.length) : '';
  const start = nameEnd + separator.length + quote.length;
  if (text.startsWith(MASK, start)) return null;
  const isNamed = assignment !== '' || isMarkup || isFlag;
  const isCertain =
    isNamed &&
    (kind === 'strong' ||
      kind === 'header' ||
      (kind === 'weak' && /^(?:token|secret)$/i.test(name) && /=/.test(assignment)));
  if (isCertain) {
    const value = matchAt(certainValue(name, kind, quote, isMarkup), text, start);
    // One or two letters behind a colon are prose.
    const isSecret = value.length >= (quote || assignment.includes('=') ? 1 : 3);
    return isSecret ? { start, end: start + value.length, isSecret } : null;
  }
  if (start < withoutDigit) return null;
  const value = matchAt(TOKEN, text, start);
  const isSecret =
    kind === 'scheme' ? value.length >= 6 && /.[0-9=A-Z_]/.test(value) : value.length >= 8 && /\d/.test(value);
  return { start, end: start + value.length, isSecret };
}

function certainValue(name: string, kind: NameKind, quote: string, isMarkup: boolean): RegExp {
  if (quote.startsWith('\\')) return /[^"'`\\\n]*/y;
  if (quote) return QUOTED[quote] as RegExp;
  if (isMarkup) return /[^<\n]*/y;
  if (kind === 'header') return /cookie$/i.test(name) ? /[^"'`\n]*/y : HEADER_VALUE;
  // As in an environment file: everything up to the next space.
  return /^[A-Z\d_]+$/.test(name) ? /[^\s"'`]+/y : /[^\s"'`,;}\])]+/y;
}

const QUOTED: Readonly<Record<string, RegExp>> = {
  '"': /(?:[^"\\\n]|\\.)*/y,
  "'": /(?:[^'\\\n]|\\.)*/y,
  '`': /(?:[^`\\\n]|\\.)*/y,
};

function matchAt(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? '';
}
