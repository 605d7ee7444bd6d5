import type { JsonObject, JsonValue } from '../../../lib/contracts/json.js';
import {
  checkAnswer,
  MAX_CHECK_STEPS,
  MAX_SCHEMA_DEPTH,
  MAX_SCHEMA_PARTS,
  schemaProblem,
} from '../../../lib/engine/values/answer-schema.js';

const problems = (schema: JsonObject, value: JsonValue): string[] => checkAnswer(schema, value).problems;

describe('PPL-8: schemas of questions are data', () => {
  it.each([
    {},
    { type: 'string', minLength: 1, maxLength: 10, format: 'date', title: 't', description: 'd', default: 'x' },
    { type: ['integer', 'null'], minimum: 0, exclusiveMaximum: 9 },
    { $schema: 'https://json-schema.org/draft/2020-12/schema', enum: ['a', 1, true, null] },
    {
      type: 'object',
      properties: { rows: { type: 'array', minItems: 1, items: { type: 'object', required: ['id'] } } },
      required: ['rows'],
      additionalProperties: false,
    },
  ] as JsonObject[])('%j is of the subset', (schema) => {
    expect(schemaProblem(schema)).toBeNull();
  });

  it.each([
    [{ $async: true, type: 'string' }, 'schema.$async is not supported'],
    [{ pattern: '^(a+)+$' }, 'schema.pattern is not supported'],
    [{ $ref: '#' }, 'schema.$ref is not supported'],
    [{ $defs: {} }, 'schema.$defs is not supported'],
    [{ anyOf: [{}] }, 'schema.anyOf is not supported'],
    [{ patternProperties: {} }, 'schema.patternProperties is not supported'],
    [{ uniqueItems: true }, 'schema.uniqueItems is not supported'],
    [{ constructor: {} }, 'schema.constructor is not supported'],
    [{ properties: { a: { items: { pattern: 'x' } } } }, 'schema.properties.a.items.pattern is not supported'],
    [{ type: 'no such type' }, 'schema.type must be one of string'],
    [{ type: 'constructor' }, 'schema.type must be one of string'],
    [{ type: [] }, 'schema.type must be one of string'],
    [{ minimum: 'none' }, 'schema.minimum must be a number'],
    [{ minLength: -1 }, 'schema.minLength must be a whole number'],
    [{ enum: [] }, 'schema.enum must be a list'],
    [{ enum: [{}] }, 'schema.enum must be a list'],
    [{ required: [1] }, 'schema.required must be a list'],
    [{ format: 'regex' }, 'schema.format must be one of date'],
    [{ items: true }, 'schema.items must be an object'],
    [{ properties: [] }, 'schema.properties must be an object'],
    [[], 'schema must be an object'],
  ] as [JsonValue, string][])('%j is not', (schema, problem) => {
    expect(schemaProblem(schema)).toMatch(new RegExp(`^${problem.replace(/[$.()]/g, '\\$&')}`));
  });

  it('is bounded in size and depth', () => {
    const nested = (levels: number): JsonObject => (levels === 1 ? {} : { items: nested(levels - 1) });
    expect(schemaProblem(nested(MAX_SCHEMA_DEPTH))).toBeNull();
    expect(schemaProblem(nested(MAX_SCHEMA_DEPTH + 1))).toBe(`schema has more than ${MAX_SCHEMA_DEPTH} levels`);
    expect(schemaProblem(nested(500))).toBe(`schema has more than ${MAX_SCHEMA_DEPTH} levels`);
    const wide = (count: number) => ({
      properties: Object.fromEntries(Array.from({ length: count }, (_, n) => [`p${n}`, {}])),
    });
    expect(schemaProblem(wide(MAX_SCHEMA_PARTS - 1))).toBeNull();
    expect(schemaProblem(wide(MAX_SCHEMA_PARTS))).toBe(`schema has more than ${MAX_SCHEMA_PARTS} parts`);
    expect(schemaProblem(wide(100_000))).toBe(`schema has more than ${MAX_SCHEMA_PARTS} parts`);
    expect(schemaProblem({ enum: Array.from({ length: MAX_SCHEMA_PARTS }, (_, n) => n) })).toBe(
      `schema has more than ${MAX_SCHEMA_PARTS} parts`,
    );
  });
});

describe('PPL-8: answers are checked by interpretation', () => {
  const order: JsonObject = {
    type: 'object',
    required: ['id', 'lines'],
    additionalProperties: false,
    properties: {
      id: { type: 'integer', minimum: 1 },
      lines: { type: 'array', maxItems: 2, items: { type: 'string', minLength: 2 } },
      when: { format: 'date' },
    },
  };

  it.each([
    [order, { id: 1, lines: ['ab'] }, []],
    [
      order,
      { id: 0, lines: ['a', 'bc', 'de'] },
      ['id must be at least 1', 'lines must have at most 2 items', 'lines[0] must have at least 2 characters'],
    ],
    [order, { more: 1 }, ['the answer must have id', 'the answer must have lines', 'the answer must not have more']],
    [order, { id: 1, lines: [], when: '2026-02-30' }, ['when must be a date']],
    [order, 'text', ['the answer must be object']],
    [{ type: ['integer', 'null'] }, null, []],
    [{ type: 'integer' }, 1.5, ['the answer must be integer']],
    [{ type: 'integer' }, 1e21, ['the answer must be integer']],
    [{ enum: ['a', 2] }, 'b', ['the answer must be one of ["a",2]']],
    [{ const: true }, false, ['the answer must be true']],
    [{ exclusiveMinimum: 1, exclusiveMaximum: 2 }, 1, ['the answer must be more than 1']],
    [{ type: 'string', maxLength: 1 }, '😀', []],
    [{ properties: { a: { type: 'string' } } }, ['not an object'], []],
    [{ required: ['toString'] }, {}, ['the answer must have toString']],
  ] as [JsonObject, JsonValue, string[]][])('%j, %j', (schema, value, expected) => {
    expect(problems(schema, value)).toEqual(expected);
  });

  it.each([
    ['date', '2024-02-29', '2023-02-29'],
    ['date-time', '2026-12-01T10:00:00.5+01:00', '2026-12-01'],
    ['time', '23:59', '24:00'],
    ['email', 'ada@example.org', 'ada example'],
    ['uri', 'https://example.org/a?b', 'no uri'],
    ['uuid', '0190b5ae-6f6b-7cc4-9d1c-000000000000', '0190b5ae'],
  ])('format %s takes %s, and not %s', (format, good, bad) => {
    expect(problems({ format }, good)).toEqual([]);
    expect(problems({ format }, bad)).toEqual([`the answer must be a ${format}`]);
  });

  it('stops at the first 20 problems', () => {
    const value = Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`k${n}`, n]));
    const checked = checkAnswer({ additionalProperties: false }, value);
    expect(checked.problems).toHaveLength(20);
    expect(checked.steps).toBe(21);
  });

  it('takes a bounded number of steps, and what is larger does not pass', () => {
    const choices = Array.from({ length: 900 }, (_, n) => `choice ${n}`);
    const value = Array.from({ length: 200_000 }, () => 'choice 899');
    expect(checkAnswer({ items: { enum: choices } }, value)).toEqual({
      problems: [expect.stringMatching(/is too large to be checked$/)],
      steps: MAX_CHECK_STEPS,
    });
  });
});
