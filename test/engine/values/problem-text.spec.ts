import { firstProblems } from '../../../lib/engine/values/plain-text.js';

describe('Problems of validators', () => {
  it('are told as they are, while they are few and short', () => {
    expect(firstProblems(['a is missing', 'b is no number'])).toEqual(['a is missing', 'b is no number']);
  });

  it('are the first 20, each shortened, with the number of the others', () => {
    const told = firstProblems(Array.from({ length: 100_000 }, (_, n) => `${n} ${'x'.repeat(1_000)}`));
    expect(told).toHaveLength(21);
    expect(told.at(-1)).toBe('and 99980 more');
    expect(Math.max(...told.map((problem) => problem.length))).toBe(300);
  });

  it('are never nothing: a refusal without a word is one', () => {
    for (const silent of [[], [''], ['  '], [undefined]])
      expect(firstProblems(silent)).toEqual(['they do not fit the schema']);
  });
});
