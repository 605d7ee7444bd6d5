import { parseArguments } from '../../../lib/engine/values/json-domain.js';

describe('MOD-4: argument text', () => {
  it.each(['', ' ', '\n\t'])('B075: blank text %j is an empty object', (text) => {
    expect(parseArguments(text)).toEqual({ ok: true, arguments: {} });
  });

  it.each([
    '{"a":"line1\nline2"}',
    '{"a":"he said "hi""}',
    '{"a":"\\U0001F600"}',
    '{"a":"\\`x\\`"}',
    '{"a":1,}',
    '{"a":NaN}',
    "{'a':1}",
    '{"a":1}}',
    '{"a":1}{"b":2}',
    '\ufeff{"a":1}',
    '```json\n{"a":1}\n```',
    '{"a":01}',
    '{"a":undefined}',
    '{"a":"\\x41"}',
    '[',
    '"',
    '{"a":1',
    'null null',
    '{"path":"/tmp/a","recursive":true',
  ])('B072, B085: %j is refused, not repaired', (text) => {
    const result = parseArguments(text);
    expect(result).toEqual({
      ok: false,
      problem: expect.stringMatching(/^The arguments are not valid JSON.* exactly one JSON object\.$/),
    });
    // The problem travels into logs and events: it repeats nothing of the arguments.
    expect(!result.ok && result.problem).not.toMatch(/tmp|line1|said/);
  });

  it.each([
    ['null', 'null'],
    ['[1]', 'an array'],
    ['"{}"', 'a string'],
    ['1', 'a number'],
    ['true', 'a boolean'],
  ])('%s is no object', (text, kind) => {
    expect(parseArguments(text)).toEqual({
      ok: false,
      problem: expect.stringContaining(`The arguments are ${kind}, not`),
    });
  });

  it.each([
    '{"__proto__":{"isAdmin":true}}',
    '{"a":{"__proto__":{"isAdmin":true}}}',
    '{"constructor":{"prototype":{"isAdmin":true}}}',
    '{"\\u005f_proto__":{"isAdmin":true}}',
    '{"toString":1,"valueOf":2,"hasOwnProperty":3}',
    '{"__proto__":-0}',
  ])('B110: %s stays plain data', (text) => {
    const result = parseArguments(text);
    expect(result.ok && JSON.stringify(result.arguments)).toBe(JSON.stringify(JSON.parse(text)));
    expect(result.ok && Object.getPrototypeOf(result.arguments)).toBe(Object.prototype);
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });

  it('takes the last of duplicate keys', () => {
    expect(parseArguments('{"a":1,"a":2}')).toEqual({ ok: true, arguments: { a: 2 } });
  });

  it('refuses what a journal could not give back as it was', () => {
    expect(parseArguments('{"a":[{"b":1e400}]}')).toEqual({
      ok: false,
      problem: 'The number at $.a[0].b would be rounded (beyond ±(2^53 − 1)); give it as text.',
    });
    const settled = parseArguments('{"a":-0,"b":[-0.0]}');
    expect(settled.ok && Object.is(settled.arguments['a'], 0)).toBe(true);
    expect(settled).toMatchObject({ arguments: { b: [0] } });
  });

  it('refuses more than 128 levels, however many', () => {
    const nested = (levels: number) => '{"d":'.repeat(levels) + '1' + '}'.repeat(levels);
    expect(parseArguments(nested(128)).ok).toBe(true);
    for (const levels of [129, 100_000])
      expect(parseArguments(nested(levels))).toMatchObject({ ok: false, problem: expect.stringContaining('128') });
  });
});

describe('MOD-4: arguments that no validator shall see', () => {
  it.each([
    '{"account":76561198016705746}',
    '{"account":9007199254740993}',
    '{"account":9007199254740992}',
    '{"account":-9007199254740993}',
    '{"account":1e400}',
    '{"account":-1e400}',
    '{"account":1e21}',
    '{"account":12345678901234567.89}',
    '{"account":9007199254740991.5}',
  ])('%s would be rounded', (text) => {
    expect(parseArguments(text)).toEqual({
      ok: false,
      problem: 'The number at $.account would be rounded (beyond ±(2^53 − 1)); give it as text.',
    });
  });

  it.each(['{"a":9007199254740991}', '{"a":-9007199254740991}', '{"a":0.1}', '{"a":1e15}', '{"a":1e-7}'])(
    '%s is taken as it is',
    (text) => {
      expect(parseArguments(text)).toEqual({ ok: true, arguments: JSON.parse(text) as unknown });
    },
  );

  it('are not walked to their end', () => {
    const many = (count: number) => JSON.stringify({ list: Array.from({ length: count }, () => 1) });
    expect(parseArguments(many(9_990)).ok).toBe(true);
    expect(parseArguments(many(100_000))).toEqual({
      ok: false,
      problem: 'The arguments hold more than 10000 values.',
    });
    const wide = JSON.stringify({ map: Object.fromEntries(Array.from({ length: 1_001 }, (_, n) => [`k${n}`, n])) });
    expect(parseArguments(wide)).toEqual({
      ok: false,
      problem: 'The object at $.map has more than 1000 properties.',
    });
  });
});
