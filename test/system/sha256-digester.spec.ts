import type { JsonValue } from '../../lib/contracts/json.js';
import { Sha256Digester } from '../../lib/system/system-ports.js';

/** IEEE 754 bits and text, from appendix B. */
const NUMBERS = [
  ['0000000000000000', '0'],
  ['8000000000000000', '0'],
  ['0000000000000001', '5e-324'],
  ['8000000000000001', '-5e-324'],
  ['7fefffffffffffff', '1.7976931348623157e+308'],
  ['ffefffffffffffff', '-1.7976931348623157e+308'],
  ['4340000000000000', '9007199254740992'],
  ['c340000000000000', '-9007199254740992'],
  ['4430000000000000', '295147905179352830000'],
  ['44b52d02c7e14af5', '9.999999999999997e+22'],
  ['44b52d02c7e14af6', '1e+23'],
  ['44b52d02c7e14af7', '1.0000000000000001e+23'],
  ['444b1ae4d6e2ef4e', '999999999999999700000'],
  ['444b1ae4d6e2ef4f', '999999999999999900000'],
  ['444b1ae4d6e2ef50', '1e+21'],
  ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
  ['3eb0c6f7a0b5ed8d', '0.000001'],
  ['41b3de4355555553', '333333333.3333332'],
  ['41b3de4355555554', '333333333.33333325'],
  ['41b3de4355555555', '333333333.3333333'],
  ['41b3de4355555556', '333333333.3333334'],
  ['41b3de4355555557', '333333333.33333343'],
  ['becbf647612f3696', '-0.0000033333333333333333'],
  ['43143ff3c1cb0959', '1424953923781206.2'],
] as const;

function doubleOf(bits: string): number {
  return Buffer.from(bits, 'hex').readDoubleBE();
}

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

  it('writes the numbers of appendix B, and refuses those that are no JSON', () => {
    for (const [bits, text] of NUMBERS) expect(digester.canonical(doubleOf(bits))).toBe(text);
    for (const bits of ['7fffffffffffffff', '7ff0000000000000', 'fff0000000000000'])
      expect(() => digester.canonical([doubleOf(bits)])).toThrow('is no JSON');
  });

  it('writes the example of section 3.2.2 as it is in section 3.2.4', () => {
    const text = String.raw`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`;
    expect(canonical(text)).toBe(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    );
  });

  it('sorts the names of large objects like those of small ones, and leaves out what is undefined', () => {
    const names = Array.from({ length: 40 }, (_, index) => `n${(index * 7) % 40}`);
    const value = Object.fromEntries(names.map((name) => [name, { b: name, a: undefined }]));
    expect(digester.canonical(value)).toBe(
      `{${[...names]
        .sort()
        .map((name) => `"${name}":{"b":"${name}"}`)
        .join(',')}}`,
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
