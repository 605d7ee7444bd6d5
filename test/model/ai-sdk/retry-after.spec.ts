import { retryAfterMs, type HeaderValue } from '../../../lib/model/ai-sdk/model-call-failure.js';

describe('MOD-2: an announced delay (RFC 9110)', () => {
  const now = Date.UTC(2026, 10, 29, 12, 0, 0, 250);
  const httpDate = (offsetSeconds: number) => new Date(now + offsetSeconds * 1_000).toUTCString();

  it.each<[string, HeaderValue, number | undefined]>([
    ['seconds', '3', 3_000],
    ['an explicit zero', '0', 0],
    ['leading zeros and white space', ' 007 ', 7_000],
    ['negative', '-5', undefined],
    ['a plus sign', '+5', undefined],
    ['a fraction', '1.5', undefined],
    ['an exponent', '1e3', undefined],
    ['nothing', '', undefined],
    ['words', 'abc', undefined],
    ['a number with a unit', '3s', undefined],
    ['a date ahead (IMF-fixdate)', httpDate(3), 2_750],
    ['a date in the past', httpDate(-60), undefined],
    ['a date far ahead', 'Wed, 31 Dec 2098 23:59:59 GMT', Date.UTC(2098, 11, 31, 23, 59, 59) - now],
    ['an RFC 850 date', 'Sunday, 29-Nov-26 12:00:05 GMT', 4_750],
    ['an RFC 850 date of the last century', 'Wednesday, 31-Dec-98 23:59:59 GMT', undefined],
    ['an asctime date', 'Sun Nov 29 12:00:05 2026', 4_750],
    ['an asctime date with a one-digit day', 'Tue Dec  1 12:00:00 2026', 2 * 86_400_000 - 250],
    ['a day no month has', 'Tue, 31 Nov 2026 12:00:00 GMT', undefined],
    ['an hour no day has', 'Sun, 29 Nov 2026 24:00:00 GMT', undefined],
    ['a date in another zone', 'Sun, 29 Nov 2026 12:00:05 CET', undefined],
    ['an ISO date', '2026-11-29T12:00:05Z', undefined],
    ['beyond any number', '99999999999999999999', Number.MAX_SAFE_INTEGER],
    ['two headers', ['1', '5'], 5_000],
    ['two headers joined', '1, 5', 5_000],
    ['two headers, one of them garbage', '-1, 2', 2_000],
    ['a date and seconds joined', `${httpDate(9)}, 3`, 8_750],
    ['seconds and two dates joined', `3, ${httpDate(-9)}, ${httpDate(1)}`, 3_000],
    ['no value', undefined, undefined],
  ])('B089: %s', (_title, value, expected) => {
    expect(retryAfterMs({ 'retry-after': value }, now)).toBe(expected);
  });

  it('is found whatever the case of the name, and never on Object.prototype', () => {
    expect(retryAfterMs({ 'Retry-After': '2' }, now)).toBe(2_000);
    expect(retryAfterMs({ constructor: '2', toString: '3' }, now)).toBeUndefined();
    expect(retryAfterMs({}, now)).toBeUndefined();
    expect(retryAfterMs(undefined, now)).toBeUndefined();
  });

  it('takes retry-after-ms in digits, and the longer of the two', () => {
    expect(retryAfterMs({ 'retry-after-ms': '250' }, now)).toBe(250);
    expect(retryAfterMs({ 'retry-after-ms': '250.5' }, now)).toBeUndefined();
    expect(retryAfterMs({ 'retry-after-ms': '250', 'retry-after': '1' }, now)).toBe(1_000);
    expect(retryAfterMs({ 'retry-after-ms': '2500', 'retry-after': 'soon' }, now)).toBe(2_500);
  });
});
