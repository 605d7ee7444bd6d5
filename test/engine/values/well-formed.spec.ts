import { wellFormedJson, wellFormedText } from '../../../lib/engine/values/plain-text.js';
import { isBlankText } from '../../../lib/contracts/text.js';
import type { JsonValue } from '../../../lib/contracts/json.js';

describe('JRN-9: what goes to a provider is well-formed', () => {
  it.each([
    ['a\ud83d', 'a\ufffd'],
    ['\udd11b', '\ufffdb'],
    ['\ud83d\ud83d\udd11', '\ufffd\ud83d\udd11'],
    ['\u{1F511}', '\u{1F511}'],
  ])('%j', (text, expected) => {
    expect(wellFormedText(text)).toBe(expected);
  });

  it('in values and keys at any depth, and without touching the original', () => {
    const original: JsonValue = { a: [{ 'k\ud83d': ['\udd11', 1, null, true] }], same: { x: 'y' } };
    const repaired = wellFormedJson(original);
    expect(repaired).toEqual({ a: [{ 'k\ufffd': ['\ufffd', 1, null, true] }], same: { x: 'y' } });
    expect(repaired.same).toBe(original.same);
    expect(JSON.stringify(original)).toContain('\\ud83d');
  });

  it('gives back the very value when there is nothing to repair', () => {
    const value: JsonValue = { a: [1, { b: '\u{1F511}' }] };
    expect(wellFormedJson(value)).toBe(value);
  });

  it('B110: keeps a __proto__ key an own key', () => {
    const repaired = wellFormedJson(JSON.parse('{"__proto__":{"isAdmin":true},"a":"\\ud83d"}') as JsonValue);
    expect(JSON.stringify(repaired)).toBe('{"__proto__":{"isAdmin":true},"a":"\ufffd"}');
    expect((repaired as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });
});

describe('B098: blank text', () => {
  it.each(['', ' ', '\n', '\t\r\n ', '\u00a0', '\u200b', '\u200d\u2060', '\ufeff', '\u00ad', '\u3000', '\u0000'])(
    '%j is blank',
    (text) => {
      expect(isBlankText(text)).toBe(true);
    },
  );

  it.each(['.', ' a ', '\u{1F511}', '\u200bx', '無', '-'])('%j is not', (text) => {
    expect(isBlankText(text)).toBe(false);
  });
});
