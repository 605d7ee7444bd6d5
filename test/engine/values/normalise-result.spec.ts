import { normaliseResult } from '../../../lib/engine/values/normalise-result.js';

const limits = { maxBytes: 1_000_000, maxDepth: 128 };
const nested = (levels: number) => {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = { d: value };
  return value;
};
const cyclic: Record<string, unknown> = { a: 1 };
cyclic.self = cyclic;
const shared = { x: 1 };
const sparse = new Array(3);
sparse[0] = 1;
sparse[2] = 3;
const revoked = Proxy.revocable({}, {});
revoked.revoke();
const fail = (thrown: unknown): never => {
  throw thrown;
};
class Order {
  #secret = 1;
  id = 2;
  get total() {
    return this.#secret;
  }
}

describe('JRN-9: a result that has a JSON form', () => {
  it.each<[string, unknown, unknown]>([
    ['undefined becomes null', undefined, null],
    ['null', null, null],
    ['the empty text', '', ''],
    ['zero', 0, 0],
    ['false', false, false],
    ['an integer beyond 2^53 as the double it is', 2 ** 53 + 1, 9007199254740992],
    ['1e308', 1e308, 1e308],
    ['a BigInt becomes decimal text', 12345678901234567890n, '12345678901234567890'],
    ['a nested BigInt', { n: [2n] }, { n: ['2'] }],
    ['a Date becomes ISO text', new Date(0), '1970-01-01T00:00:00.000Z'],
    ['a Buffer by its toJSON', Buffer.from([0, 255]), { type: 'Buffer', data: [0, 255] }],
    ['a typed array by its indexes', new Uint8Array([1, 2]), { '0': 1, '1': 2 }],
    [
      'an Error by name and message',
      new TypeError('x', { cause: new Error('y') }),
      { name: 'TypeError', message: 'x' },
    ],
    [
      'an AggregateError without its errors',
      new AggregateError([new Error('a')], 'b'),
      { name: 'AggregateError', message: 'b' },
    ],
    ['a DOMException', new DOMException('gone', 'AbortError'), { name: 'AbortError', message: 'gone' }],
    [
      'an Error whose message is a number',
      Object.assign(new Error('e'), { message: 5 }),
      { name: 'Error', message: '5' },
    ],
    [
      'an Error whose message is an object',
      Object.assign(new Error('e'), { message: {} }),
      { name: 'Error', message: '' },
    ],
    ['a URL', new URL('http://h.example/'), 'http://h.example/'],
    ['a class instance by its fields', new Order(), { id: 2 }],
    ['an object without prototype', Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    ['a toJSON that gives undefined', { toJSON: () => undefined }, null],
    ['a toJSON that gives undefined, as a property', { a: { toJSON: () => undefined }, b: 1 }, { b: 1 }],
    ['a toJSON that gives undefined, in an array', [{ toJSON: () => undefined }], [null]],
    ['a toJSON that is no function', { toJSON: 5 }, { toJSON: 5 }],
    ['holes of an array', sparse, [1, null, 3]],
    ['undefined in an array', [undefined], [null]],
    ['undefined as a property', { a: undefined, b: 1 }, { b: 1 }],
    ['text that looks like JSON stays text', '{"a":1}', '{"a":1}'],
    ['quoted text stays text', '"123"', '"123"'],
    ['a lone surrogate', '\ud83d', '\ud83d'],
    [
      'controls and NUL, in keys too',
      { 'k\u0000': 'a\u0000\u001f\u007f\u0085\u2028\ufffe' },
      { 'k\u0000': 'a\u0000\u001f\u007f\u0085\u2028\ufffe' },
    ],
    ['boxed primitives', [Object(1), Object('s'), Object(false), Object(2n)], [1, 's', false, '2']],
    ['a frozen object', Object.freeze({ a: 1 }), { a: 1 }],
    ['a reference that is shared but not cyclic, twice', [shared, { shared }], [{ x: 1 }, { shared: { x: 1 } }]],
    [
      'properties with names of Object.prototype',
      { toString: 1, length: 5, then: 'x' },
      { toString: 1, length: 5, then: 'x' },
    ],
    [
      'symbol keys and hidden properties are not part of it',
      Object.defineProperty({ [Symbol('s')]: 1 }, 'hidden', { value: 1 }),
      {},
    ],
    ['128 levels', nested(128), nested(128)],
  ])('%s', (_title, value, expected) => {
    const result = normaliseResult(value, limits);
    expect(result).toEqual({
      ok: true,
      value: expected,
      notes: [],
      bytes: Buffer.byteLength(JSON.stringify(expected)),
    });
  });

  it('JRN-9: turns -0 into 0, so that a live run and a replayed one agree', () => {
    const result = normaliseResult({ a: -0, b: [-0] }, limits);
    expect(result.ok && Object.is((result.value as { a: number }).a, 0)).toBe(true);
    expect(result).toMatchObject({ value: JSON.parse(JSON.stringify({ a: -0, b: [-0] })) });
  });

  it('JRN-9: gives toJSON its key and asks it once', () => {
    const keys: string[] = [];
    const inner = { toJSON: () => 'asked twice' };
    const outer = { toJSON: (key: string) => (keys.push(key), { inner: 1, ...inner }) };
    const result = normaliseResult({ list: [outer] }, limits);
    expect(keys).toEqual(['0']);
    // The function that was copied along is what has no form: it was not called.
    expect(result).toEqual({ ok: false, path: '$.list[0].toJSON', problem: expect.stringContaining('function') });
  });

  it('B109: names what became null', () => {
    expect(normaliseResult({ a: NaN, b: [Infinity, -Infinity], c: new Date(NaN), 'd e': NaN }, limits)).toMatchObject({
      ok: true,
      value: { a: null, b: [null, null], c: null, 'd e': null },
      notes: [
        'non-finite number at $.a became null',
        'non-finite number at $.b[0] became null',
        'non-finite number at $.b[1] became null',
        'invalid date at $.c became null',
        'non-finite number at $["d e"] became null',
      ],
    });
  });

  it('keeps the number of notes bounded', () => {
    const result = normaliseResult(new Array(1_000).fill(NaN), limits);
    expect(result.ok && result.notes).toHaveLength(21);
    expect(result.ok && result.notes.at(-1)).toBe('980 more');
  });

  it('B165: ignores the toJSON of an Error, which serialises requests and keys', () => {
    const error = Object.assign(new Error('boom'), {
      config: { headers: { authorization: 'canary' } },
      toJSON: () => ({ authorization: 'canary' }),
    });
    const result = normaliseResult({ error, indirect: { toJSON: () => error } }, limits);
    expect(result).toMatchObject({
      value: { error: { name: 'Error', message: 'boom' }, indirect: { name: 'Error', message: 'boom' } },
    });
    expect(JSON.stringify(result)).not.toContain('canary');
  });

  it('JRN-9: is detached from the original', () => {
    const original = { list: [{ a: 1 }] };
    const result = normaliseResult(original, limits);
    original.list[0]!.a = 2;
    original.list.push({ a: 3 });
    expect(result).toMatchObject({ value: { list: [{ a: 1 }] } });
  });
});

describe('B110: keys that name prototypes', () => {
  it.each([
    '{"__proto__":{"isAdmin":true}}',
    '{"a":{"__proto__":{"isAdmin":true}}}',
    '{"constructor":{"prototype":{"isAdmin":true}}}',
    '{"\\u005f_proto__":{"isAdmin":true}}',
    '[{"__proto__":[]}]',
    '{"a":1,"a":2}',
    '{"toString":1,"valueOf":2,"hasOwnProperty":3}',
    '{"length":5,"then":"x"}',
    '{"__defineGetter__":1}',
  ])('%s is kept as plain data', (text) => {
    const original: unknown = JSON.parse(text);
    const result = normaliseResult(original, limits);
    expect(result.ok && JSON.stringify(result.value)).toBe(JSON.stringify(original));
    expect(result.ok && Object.getPrototypeOf(result.value)).toBe(
      Array.isArray(original) ? Array.prototype : Object.prototype,
    );
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });
});

describe('JRN-9: a result without a JSON form', () => {
  it.each<[string, unknown, string, RegExp]>([
    ['a cycle', { a: [cyclic] }, '$.a[0].self', /contains it/],
    ['a Map', { g: new Map([[1, 2]]) }, '$.g', /Map/],
    ['a Set', [new Set([1])], '$[0]', /Set/],
    ['a WeakMap', new WeakMap(), '$', /WeakMap/],
    ['a RegExp', { a: { 'b c': /a/g } }, '$.a["b c"]', /RegExp/],
    ['an ArrayBuffer', new ArrayBuffer(4), '$', /ArrayBuffer/],
    ['a DataView', new DataView(new ArrayBuffer(4)), '$', /DataView/],
    ['a symbol', { a: Symbol('s') }, '$.a', /symbol/],
    ['a boxed symbol', { a: Object(Symbol('s')) }, '$.a', /symbol/],
    ['a function', { a: () => 1 }, '$.a', /function/],
    ['a class', { a: Order }, '$.a', /function/],
    ['a nested Promise', { a: Promise.resolve(7) }, '$.a', /Promise/],
    ['a thenable', { a: { then: (resolve: (value: number) => void) => resolve(42) } }, '$.a', /promise-like/],
    ['an async toJSON', { a: { toJSON: async () => 1 } }, '$.a', /Promise/],
    ['a generator', { a: (function* () { yield 1; })() }, '$.a', /generator/], // prettier-ignore
    ['an iterator', { a: [1].values() }, '$.a', /iterable/],
    ['headers', { a: new Headers({ a: 'b' }) }, '$.a', /iterable/],
    ['a response', { a: new Response('x') }, '$.a', /Response/],
    ['a throwing getter', { get a() { throw new Error('getter'); } }, '$.a', /could not be read: getter/], // prettier-ignore
    ['a throwing toJSON', [{ toJSON() { throw new Error('tj'); } }], '$[0]', /tj/], // prettier-ignore
    ['a throwing Proxy', { a: new Proxy({}, { ownKeys() { throw new Error('px'); } }) }, '$.a', /px/], // prettier-ignore
    [
      'a Proxy that hides what it throws',
      { a: new Proxy({}, { getPrototypeOf: () => fail(revoked.proxy) }) },
      '$.a',
      /could not be read/,
    ],
    ['a revoked Proxy', { a: revoked.proxy }, '$.a', /could not be read/],
    ['129 levels', nested(129), `$${'.d'.repeat(128)}`, /deeper than 128/],
    ['10,000 levels', nested(10_000), `$${'.d'.repeat(128)}`, /deeper than 128/],
  ])('%s is told by its path', (_title, value, path, problem) => {
    expect(normaliseResult(value, limits)).toEqual({ ok: false, path, problem: expect.stringMatching(problem) });
  });

  it('shortens the path of a huge key', () => {
    const result = normaliseResult({ ['k'.repeat(5_000_000)]: () => 1 }, { maxBytes: 10_000_000 });
    expect(!result.ok && result.path.length).toBeLessThan(200);
  });
});

describe('JRN-9: the size of a result', () => {
  const mixed = {
    'kéy "x"': ['\u0000\n"\\', 'ß', '€', '\u{1F511}', '\ud83d', 1.5, -0, true, false, null, {}, []],
    empty: '',
  };
  const exact = Buffer.byteLength(JSON.stringify(mixed));

  it('is counted in UTF-8 bytes of its JSON text', () => {
    expect(normaliseResult(mixed, { maxBytes: exact })).toMatchObject({ ok: true, bytes: exact });
    expect(normaliseResult(mixed, { maxBytes: exact - 1 })).toMatchObject({
      ok: false,
      problem: expect.stringContaining(`${exact - 1} bytes`),
    });
  });

  it.each(['x', '\u{1F511}', '"\\\n'])('accepts 5 MB of %j', (unit) => {
    const text = unit.repeat(1_500_000);
    const result = normaliseResult({ text }, { maxBytes: 16 * 1024 * 1024 });
    expect(result.ok && result.value).toEqual({ text });
  });

  it('refuses what grows beyond it by sharing, by holes or by index keys, without building it', () => {
    let laughs: unknown = 'ha';
    for (let level = 0; level < 100; level++) laughs = [laughs, laughs];
    for (const value of [laughs, new Array(2 ** 32 - 1), new Uint8Array(50_000_000), 'x'.repeat(2_000_000)]) {
      expect(normaliseResult({ value }, limits)).toMatchObject({
        ok: false,
        problem: expect.stringContaining('larger'),
      });
    }
  });
});
