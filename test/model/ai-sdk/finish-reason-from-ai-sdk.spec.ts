import { readFileSync } from 'node:fs';
import { endingFromAiSdk, PROVIDER_WORDS } from '../../../lib/model/ai-sdk/finish-reason-from-ai-sdk.js';

const reasonOf = (finishReason: unknown, raw?: unknown) => endingFromAiSdk(finishReason, raw).reason;

describe('MOD-3: the finish reason', () => {
  it.each(['stop', 'length', 'content-filter', 'tool-calls', 'error', 'other', 'unknown'])('v2 %s', (reason) => {
    expect(reasonOf(reason)).toBe(reason);
  });

  it.each(['stop', 'length', 'content-filter', 'tool-calls', 'error'])('v3 %s', (unified) => {
    expect(reasonOf({ unified, raw: undefined })).toBe(unified);
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
      expect(reasonOf({ unified, raw })).toBe('length');
    expect(reasonOf(raw)).toBe('length');
  });

  it.each([
    ['refusal', 'refusal'],
    ['content_filter', 'content-filter'],
    ['sensitive', 'content-filter'],
    ['SAFETY', 'content-filter'],
    ['guardrail_intervened', 'content-filter'],
    ['PROHIBITED_CONTENT', 'content-filter'],
    ['pause_turn', 'pause'],
    ['error', 'error'],
    ['network_error', 'error'],
    ['insufficient_system_resource', 'error'],
    ['abort', 'error'],
    ['repetition', 'error'],
    ['MALFORMED_FUNCTION_CALL', 'error'],
    ['UNEXPECTED_TOOL_CALL', 'error'],
    ['LANGUAGE', 'error'],
  ])('B097, R201, R202, R204, R208: %s is %s, however the SDK translates it', (raw, expected) => {
    for (const unified of ['content-filter', 'other', 'stop', 'tool-calls', undefined])
      expect(reasonOf({ unified, raw })).toBe(expected);
    expect(reasonOf(raw)).toBe(expected);
    expect(reasonOf('unknown', raw)).toBe(expected);
  });

  it('B097: a filter verdict on a reply that ended normally is a refusal', () => {
    expect(reasonOf({ unified: 'content-filter', raw: 'stop' })).toBe('refusal');
  });

  it.each([
    [{ unified: undefined, raw: 'tool_calls' }, 'tool-calls'],
    [{ unified: undefined, raw: 'end_turn' }, 'stop'],
    [{ unified: 'other', raw: 'eos' }, 'stop'],
    [{ unified: 'tool-calls', raw: 'STOP' }, 'tool-calls'],
    [{ unified: 'stop', raw: 'tool_use' }, 'stop'],
    // A word that only its own package knows.
    [{ unified: 'stop', raw: 'fini' }, 'stop'],
  ])('%j ended well', (reason, expected) => {
    expect(reasonOf(reason)).toBe(expected);
  });

  it.each([[{ unified: 'other', raw: 'function_call_filter: X' }], ['eos_of_a_kind'], ['constructor']])(
    '%j is a word that nobody knows, and is told',
    (reason) => {
      const word = typeof reason === 'string' ? reason : reason.raw;
      expect(endingFromAiSdk(reason)).toEqual({ reason: 'other', word });
    },
  );

  it.each([
    [undefined],
    [null],
    [''],
    [7],
    [{}],
    ['unknown'],
    [{ unified: 'other', raw: undefined }],
    [{ unified: 'other', raw: null }],
    [{ unified: undefined, raw: '' }],
  ])('%j is no word at all', (reason) => {
    expect(endingFromAiSdk(reason)).toEqual({ reason: 'unknown' });
  });

  it('the guide has every word, in the row of its meaning', () => {
    const guide = readFileSync('docs/guide/models.md', 'utf8').toLowerCase();
    for (const [reason, words] of Object.entries(PROVIDER_WORDS)) {
      const row = guide.split('\n').find((line) => line.startsWith(`| \`${reason}\` |`)) ?? '';
      for (const word of words) expect(row).toContain(`\`${word}\``);
    }
  });
});
