import type { JsonValue } from '../../lib/contracts/json.js';
import { Sha256Digester } from '../../lib/system/system-ports.js';

describe('Canonical JSON (RFC 8785)', () => {
  const digester = new Sha256Digester();
  const canonical = (text: string) => digester.canonical(JSON.parse(text) as JsonValue);

  it('does not depend on key order, at any depth', () => {
    expect(canonical('{"b":[{"y":1,"x":2}],"a":null}')).toBe('{"a":null,"b":[{"x":2,"y":1}]}');
  });

  it('sorts keys by UTF-16 code units, as in the example of section 3.2.3', () => {
    const text =
      '{"\\u20ac":"Euro Sign","\\r":"Carriage Return","\\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\\ud83d\\ude00":"Emoji: Grinning Face","\\u0080":"Control","\\u00f6":"Latin Small Letter O With Diaeresis"}';
    expect(Object.values(JSON.parse(canonical(text)) as object)).toHaveLength(7);
    expect([...canonical(text).matchAll(/:"([^"]*)"/g)].map(([, value]) => value)).toEqual([
      'Carriage Return',
      'One',
      'Control',
      'Latin Small Letter O With Diaeresis',
      'Euro Sign',
      'Emoji: Grinning Face',
      'Hebrew Letter Dalet With Dagesh',
    ]);
  });

  it('writes numbers as in section 3.2.2.3', () => {
    expect(canonical('[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001,-0]')).toBe(
      '[333333333.3333333,1e+30,4.5,0.002,1e-27,0]',
    );
  });

  it('tells lone surrogates apart', () => {
    const texts = ['"\\ud83d"', '"\\udd11"', '"\\ufffd"', '{"\\ud83d":1}', '{"\\udd11":1}'].map(canonical);
    expect(new Set(texts.map((text) => digester.digest(text))).size).toBe(5);
  });

  it('B110: sees __proto__ and the like as ordinary keys', () => {
    expect(canonical('{"b":1,"__proto__":{"x":1},"toJSON":"text","constructor":2}')).toBe(
      '{"__proto__":{"x":1},"b":1,"constructor":2,"toJSON":"text"}',
    );
    expect(canonical('{"__proto__":{"x":1}}')).not.toBe(canonical('{}'));
  });

  it('keeps types apart: text that looks like JSON is text (B127)', () => {
    expect(new Set(['"123"', '123', '"\\"123\\""', 'null', '"null"'].map(canonical)).size).toBe(5);
  });

  it('digests the UTF-8 text as SHA-256 in hex', () => {
    expect(digester.digest('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    expect(digester.digest('\u{1F511}')).toBe(digester.digest(Buffer.from('f09f9491', 'hex').toString('utf8')));
  });
});
