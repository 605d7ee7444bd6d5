import { parseArguments } from '../../../lib/engine/values/parse-arguments.js';

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
      problem: 'The number at $.a[0].b is too large.',
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
