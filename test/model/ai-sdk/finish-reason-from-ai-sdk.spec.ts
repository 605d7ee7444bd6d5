import { finishReasonFromAiSdk } from '../../../lib/model/ai-sdk/finish-reason-from-ai-sdk.js';

describe('MOD-3: the finish reason', () => {
  it.each(['stop', 'length', 'content-filter', 'tool-calls', 'error', 'other', 'unknown'])('v2 %s', (reason) => {
    expect(finishReasonFromAiSdk(reason)).toBe(reason);
  });

  it.each(['stop', 'length', 'content-filter', 'tool-calls', 'error', 'other'])('v3 %s', (unified) => {
    expect(finishReasonFromAiSdk({ unified, raw: undefined })).toBe(unified);
  });

  it.each([
    'length',
    'max_tokens',
    'MAX_TOKENS',
    'model_length',
    'incomplete:max_output_tokens',
    'incomplete/max_output_tokens',
    'max_output_tokens',
  ])('B085: %s means cut, however the SDK translates it', (raw) => {
    for (const unified of ['other', 'stop', 'tool-calls', 'unknown', undefined])
      expect(finishReasonFromAiSdk({ unified, raw })).toBe('length');
    expect(finishReasonFromAiSdk(raw)).toBe('length');
  });

  it.each([
    ['refusal', 'refusal'],
    ['content_filter', 'content-filter'],
    ['SAFETY', 'content-filter'],
    ['guardrail', 'content-filter'],
    ['guardrail_intervened', 'content-filter'],
    ['PROHIBITED_CONTENT', 'content-filter'],
  ])('B097: %s is %s', (raw, expected) => {
    for (const unified of ['content-filter', 'other', 'stop'])
      expect(finishReasonFromAiSdk({ unified, raw })).toBe(expected);
    expect(finishReasonFromAiSdk(raw)).toBe(expected);
  });

  it('B097: a filter verdict on a reply that ended normally is a refusal', () => {
    expect(finishReasonFromAiSdk({ unified: 'content-filter', raw: 'stop' })).toBe('refusal');
  });

  it.each([
    [undefined, 'unknown'],
    [null, 'unknown'],
    ['', 'unknown'],
    [{}, 'unknown'],
    [{ unified: undefined, raw: 'tool_calls' }, 'tool-calls'],
    [{ unified: undefined, raw: 'end_turn' }, 'stop'],
    [{ unified: 'other', raw: 'pause_turn' }, 'other'],
    ['eos', 'other'],
    [7, 'unknown'],
    ['constructor', 'other'],
  ])('%j is %s', (reason, expected) => {
    expect(finishReasonFromAiSdk(reason)).toBe(expected);
  });
});
