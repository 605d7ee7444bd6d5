import { ModelCallError } from '../../errors/run.errors.js';
import { isBlankText } from '../../contracts/text.js';
import { recordedText, thrownMessage, thrownProperty } from '../../engine/values/recorded-error.js';
import { truncateText } from '../../engine/values/plain-text.js';
import { answeredError } from './answered-error.js';
import { UnusableReply } from './reply-from-ai-sdk.js';

export interface FailedCall {
  /** The client's name, for the text. */
  name: string;
  /** Not masked when the provider's message repeats it. */
  modelId: string;
  /** Epoch ms. */
  now: number;
  /** The provider's package had been called: what its code throws may be about the answer. */
  isSent: boolean;
}

export function abortedError(name: string): ModelCallError {
  return new ModelCallError(`The request to the model ${name} was aborted.`, { retryable: true });
}

/**
 * Whatever a model call failed with, as a `ModelCallError`: whether to ask again is decided by our own rule, not by
 * the SDK's flag, and the text is fit to be stored, shown and sent on.
 *
 * The text is the status and the provider's own message, masked and at most 300 code points; never that of a 401, 403
 * or 407, which like to repeat the key. Bodies, headers, URLs and the error itself (as a cause) are left behind.
 */
export function modelCallError(error: unknown, call: FailedCall): ModelCallError {
  if (error instanceof ModelCallError) return error;
  const answered = answeredError(error);
  const code = networkCode(error);
  // A connection that broke in the middle of a 200 is a network failure.
  if (code !== undefined && (answered === undefined || answered.status < 400)) {
    return new ModelCallError(`The model ${call.name} could not be reached or the connection broke (${code}).`, {
      retryable: true,
    });
  }
  if (answered !== undefined) {
    const { status, message, mayPass } = answered;
    const announced = retryAfterMs(
      thrownProperty(error, 'responseHeaders') as Record<string, HeaderValue> | undefined,
      call.now,
    );
    return new ModelCallError(`The model ${call.name} ${answerText(status)}${detail(message, status, call)}`, {
      status,
      retryable: mayPass,
      ...(announced === undefined ? {} : { retryAfterMs: announced }),
    });
  }
  return unanswered(error, call);
}

function answerText(status: number): string {
  return status < 400 ? `answered ${status}, but not with a reply` : `answered ${status}`;
}

/** No status and no network code. */
function unanswered(error: unknown, call: FailedCall): ModelCallError {
  const name = errorName(error);
  if (error instanceof UnusableReply) {
    return new ModelCallError(`The reply of the model ${call.name} could not be used: ${error.message}.`, {
      retryable: true,
    });
  }
  // Their messages repeat the body (MOD-9).
  if (UNUSABLE.has(name))
    return new ModelCallError(`The reply of the model ${call.name} could not be used (${name}).`, { retryable: true });
  if (name === 'AbortError' || name === 'TimeoutError' || name === 'ResponseAborted') {
    return new ModelCallError(`The request to the model ${call.name} was cut off (${name}).`, { retryable: true });
  }
  // With a cause it is fetch that failed, for a reason that is not known to pass.
  const isAboutAnswer = call.isSent && thrownProperty(error, 'cause') === undefined;
  return new ModelCallError(
    `The request to the model ${call.name} failed (${name})${detail(thrownMessage(error), 0, call)}`,
    {
      retryable: !PERMANENT.has(name) && (!FAULTS_OF_CODE.has(name) || isAboutAnswer),
    },
  );
}

/** Replies that another attempt may improve on. */
const UNUSABLE: ReadonlySet<string> = new Set([
  'AI_InvalidResponseDataError',
  'AI_NoContentGeneratedError',
  'AI_EmptyResponseBodyError',
  'AI_JSONParseError',
  'AI_TypeValidationError',
]);

/** Faults of the request: the same again fails the same way. Anything unrecognised is tried again, within the policy's bounds. */
const PERMANENT: ReadonlySet<string> = new Set([
  'AI_InvalidArgumentError',
  'AI_InvalidPromptError',
  'AI_LoadAPIKeyError',
  'AI_LoadSettingError',
  'AI_NoSuchModelError',
  'AI_TooManyEmbeddingValuesForCallError',
  'AI_UnsupportedFunctionalityError',
  'AI_UnsupportedModelVersionError',
]);

/** Thrown by a provider's package they are mostly about an answer that it did not expect (`choices: []`), which another attempt may improve on. */
const FAULTS_OF_CODE: ReadonlySet<string> = new Set([
  'TypeError',
  'ReferenceError',
  'RangeError',
  'SyntaxError',
  'URIError',
  'EvalError',
]);

function errorName(error: unknown): string {
  const name = thrownProperty(error, 'name');
  return typeof name === 'string' && /^[A-Za-z_$][\w$]{0,99}$/.test(name) ? name : 'unknown error';
}

const SILENT: ReadonlySet<number> = new Set([401, 403, 407]);

function detail(message: string, status: number, { modelId }: FailedCall): string {
  if (SILENT.has(status) || isBlankText(message)) return '.';
  const oneLine = recordedText(message).replaceAll(/\s+/g, ' ').trim();
  const text = truncateText(withoutLongTokens(oneLine, modelId), 300);
  return /[.!?…]$/.test(text) ? `: ${text}` : `: ${text}.`;
}

/** Beyond the common forms: any unbroken token of letters and digits long enough to be a key. */
function withoutLongTokens(text: string, modelId: string): string {
  return text.replaceAll(/[A-Za-z0-9_+/=-]{24,}/g, (token) =>
    /\d/.test(token) && /[A-Za-z]/.test(token) && token !== modelId ? '[redacted]' : token,
  );
}

/** Failures below HTTP that may pass: connection, name resolution, time-outs. Certificates are not among them. */
const CODES: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'ETIMEDOUT',
  'ESOCKETTIMEDOUT',
  'EPIPE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ERR_STREAM_PREMATURE_CLOSE',
  'UND_ERR_SOCKET',
  'UND_ERR_CLOSED',
  'UND_ERR_ABORTED',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  // Bun
  'ConnectionRefused',
  'ConnectionClosed',
  'FailedToOpenSocket',
]);

/** The code of the network failure behind an error, by its chain of causes; undefined when there is none. */
export function networkCode(error: unknown): string | undefined {
  let current = error;
  for (let depth = 0; depth < 8 && current !== undefined && current !== null; depth++) {
    const code = thrownProperty(current, 'code');
    if (typeof code === 'string' && CODES.has(code)) return code;
    const message = thrownProperty(current, 'message');
    const cause = thrownProperty(current, 'cause');
    // fetch tells some failures by its message alone.
    if (
      cause === undefined &&
      thrownProperty(current, 'name') === 'TypeError' &&
      /^(?:fetch failed|failed to fetch|terminated)$/i.test(String(message))
    ) {
      return 'fetch failed';
    }
    current = cause;
  }
  return undefined;
}

/** What a header may come as: one value, or one per occurrence. */
export type HeaderValue = string | readonly string[] | undefined;

const MONTHS = 'Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec';
const CLOCK = '(\\d{2}):(\\d{2}):(\\d{2})';
const DATE_FORMS: readonly { form: RegExp; fields: (match: RegExpExecArray, now: number) => DateFields }[] = [
  {
    // Sun, 06 Nov 1994 08:49:37 GMT
    form: new RegExp(`\\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (\\d{2}) (${MONTHS}) (\\d{4}) ${CLOCK} GMT(?![^,\\s])`),
    fields: (m) => dateFields(Number(m[3]), m[2], m[1], m),
  },
  {
    // Sunday, 06-Nov-94 08:49:37 GMT
    form: new RegExp(
      `\\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (\\d{2})-(${MONTHS})-(\\d{2}) ${CLOCK} GMT(?![^,\\s])`,
    ),
    fields: (m, now) => dateFields(fullYear(Number(m[3]), now), m[2], m[1], m),
  },
  {
    // Sun Nov  6 08:49:37 1994
    form: new RegExp(`\\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (${MONTHS}) ( \\d|\\d{2}) ${CLOCK} (\\d{4})(?![^,\\s])`),
    fields: (m) => dateFields(Number(m[6]), m[1], m[2], m),
  },
];

/**
 * When a provider says it may be asked again. `Retry-After` (RFC 9110 section 10.2.3) is `delay-seconds` (digits only)
 * or an HTTP date in one of the three forms of section 5.6.7; `retry-after-ms` (digits) is a custom of several
 * providers. Anything else, and a date that is past, announces nothing.
 *
 * @param headers of the answer, names in any case
 * @param now epoch ms, for dates
 * @returns ms from now, possibly 0, uncapped but a safe integer; the longest where several are announced (never
 * earlier than any of them); undefined when nothing usable is
 */
export function retryAfterMs(
  headers: Readonly<Record<string, HeaderValue>> | undefined,
  now: number,
): number | undefined {
  let longest: number | undefined;
  for (const [name, value] of Object.entries(headers ?? {})) {
    const parse = PARSERS.get(name.toLowerCase());
    if (parse === undefined || value === undefined) continue;
    for (const text of typeof value === 'string' ? [value] : value) {
      for (const ms of parse(String(text), now))
        longest = Math.max(longest ?? 0, Math.min(ms, Number.MAX_SAFE_INTEGER));
    }
  }
  return longest;
}

const PARSERS: ReadonlyMap<string, (text: string, now: number) => number[]> = new Map([
  ['retry-after', announced],
  ['retry-after-ms', digits],
]);

/** Repeated headers arrive joined by commas (RFC 9110 section 5.3), and a date has a comma of its own: dates are taken out first. */
function announced(text: string, now: number): number[] {
  const delays: number[] = [];
  let rest = text;
  for (const { form, fields } of DATE_FORMS) {
    for (let match = form.exec(rest); match !== null; match = form.exec(rest)) {
      const at = epochMs(fields(match, now));
      if (at !== undefined && at > now) delays.push(at - now);
      rest = rest.slice(0, match.index) + rest.slice(match.index + match[0].length);
    }
  }
  return [...delays, ...digits(rest).map((seconds) => seconds * 1_000)];
}

function digits(text: string): number[] {
  return text
    .split(',')
    .map((piece) => piece.trim())
    .filter((piece) => /^\d+$/.test(piece))
    .map(Number);
}

interface DateFields {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
}

function dateFields(
  year: number,
  month: string | undefined,
  day: string | undefined,
  match: RegExpExecArray,
): DateFields {
  const [hour, minute, second] = (/\d{2}:\d{2}:\d{2}/.exec(match[0]) as RegExpExecArray)[0].split(':').map(Number) as [
    number,
    number,
    number,
  ];
  return { year, month: MONTHS.split('|').indexOf(month as string), day: Number(day), hour, minute, second };
}

/** Two digits more than 50 years ahead mean the last such year (RFC 9110 section 5.6.7). */
function fullYear(twoDigits: number, now: number): number {
  const thisYear = new Date(now).getUTCFullYear();
  const year = thisYear - (thisYear % 100) + twoDigits;
  return year > thisYear + 50 ? year - 100 : year;
}

/** Undefined for a date that no calendar has; second 60 is a leap second. */
function epochMs({ year, month, day, hour, minute, second }: DateFields): number | undefined {
  const date = new Date(0);
  date.setUTCFullYear(year, month, day);
  if (date.getUTCMonth() !== month || date.getUTCDate() !== day || hour > 23 || minute > 59 || second > 60)
    return undefined;
  return date.setUTCHours(hour, minute, second);
}
