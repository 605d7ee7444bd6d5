import { outputToAiSdk } from '../../../lib/model/ai-sdk/prompt-to-ai-sdk.js';

describe('MOD-4: what a model is told of a call', () => {
  it.each([
    ['text', 'done', { type: 'text', value: 'done' }],
    ['text that looks like JSON', '{"a":1}', { type: 'text', value: '{"a":1}' }],
    ['an object', { a: [1] }, { type: 'json', value: { a: [1] } }],
    ['null', null, { type: 'json', value: null }],
    ['zero', 0, { type: 'json', value: 0 }],
    ['false', false, { type: 'json', value: false }],
    ['an empty array', [], { type: 'json', value: [] }],
    ['a lone surrogate', { 'k\ud83d': ['\udd11'] }, { type: 'json', value: { 'k\ufffd': ['\ufffd'] } }],
  ])('success: %s', (_title, output, expected) => {
    expect(outputToAiSdk('success', output)).toEqual(expected);
  });

  it.each(['', ' ', '\n', '\u200b'])('B106: the blank result %j has words', (output) => {
    expect(outputToAiSdk('success', output)).toEqual({ type: 'text', value: '(empty result)' });
  });

  it.each(['error', 'invalid_arguments', 'unknown_tool', 'cancelled', 'not_executed'] as const)(
    '%s is an error, in the recorded words',
    (outcome) => {
      expect(outputToAiSdk(outcome, 'the words \ud83d')).toEqual({ type: 'error-text', value: 'the words \ufffd' });
      expect(outputToAiSdk(outcome, { problems: ['p'] })).toEqual({ type: 'error-text', value: '{"problems":["p"]}' });
      expect(outputToAiSdk(outcome, { a: '\ud83d' }).value).toBe('{"a":"\ufffd"}');
      for (const blank of ['', ' ', null]) expect(outputToAiSdk(outcome, blank).value).toMatch(/\w{3,}/);
    },
  );

  it('denied is an answer, not a malfunction, and says so', () => {
    expect(outputToAiSdk('denied', 'Denied by alice: too much')).toEqual({
      type: 'text',
      value: 'Denied by alice: too much',
    });
    expect(outputToAiSdk('denied', 'too much')).toEqual({ type: 'text', value: 'Denied: too much' });
    expect(outputToAiSdk('denied', '')).toEqual({ type: 'text', value: expect.stringContaining('denied') });
  });

  it('unknown says that the outcome is unknown', () => {
    expect(outputToAiSdk('unknown', 'The worker stopped.').value).toBe('Outcome unknown: The worker stopped.');
    expect(outputToAiSdk('unknown', 'It is UNKNOWN.').value).toBe('It is UNKNOWN.');
    expect(outputToAiSdk('unknown', null).value).toMatch(/unknown/);
  });
});
