/**
 * When a provider says it may be asked again. `Retry-After` (RFC 9110 section 10.2.3) is `delay-seconds` (digits only) or an HTTP date in one of the three
 * forms of section 5.6.7; `retry-after-ms` (digits) is a custom of several providers. Anything else, and a date that is past, announces nothing.
 */

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
 * @param headers of the answer, names in any case
 * @param now epoch ms, for dates
 * @returns ms from now, possibly 0, uncapped but a safe integer; the longest where several are announced (never earlier than any of them); undefined when
 * nothing usable is
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
