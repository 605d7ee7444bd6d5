import { AjvSchemaChecker } from '../../lib/tools/schema/ajv-schema-checker.js';

describe('Schemas that come at run time', () => {
  const checker = new AjvSchemaChecker();

  it('PPL-8: say what is wrong with an answer, again and again', () => {
    const schema = { type: 'object', properties: { n: { type: 'integer', minimum: 2 } }, required: ['n'] };
    for (const _ of [1, 2]) {
      expect(checker.problems(schema, { n: 2 })).toEqual([]);
      expect(checker.problems(schema, { n: 1 })).toEqual(['n must be >= 2']);
      expect(checker.problems(schema, {})).toEqual(["value must have required property 'n'"]);
    }
    expect(checker.problems({ type: 'string', enum: ['a', 'b'] }, 'c')).toEqual([
      'value must be equal to one of the allowed values: ["a","b"]',
    ]);
  });

  it('change neither the value nor the schema', () => {
    const schema = Object.freeze({ type: 'object', properties: { a: { type: 'integer', default: 5 } } });
    const value = Object.freeze({});
    expect(checker.problems(schema, value)).toEqual([]);
    expect(value).toEqual({});
  });

  it('throw where the schema itself is not valid', () => {
    expect(() => checker.problems({ type: 'nothing' }, 1)).toThrow();
  });
});
