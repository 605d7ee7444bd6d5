import { addUsage, NO_USAGE } from '../../../lib/contracts/operation.js';
import { usageFromAiSdk } from '../../../lib/model/ai-sdk/reply-from-ai-sdk.js';

const input = (total: unknown, more: object = {}) => ({
  total,
  noCache: undefined,
  cacheRead: undefined,
  cacheWrite: undefined,
  ...more,
});
const output = (total: unknown, more: object = {}) => ({ total, text: undefined, reasoning: undefined, ...more });

describe('MOD-5: usage', () => {
  it.each<[string, unknown, object]>([
    [
      'v2',
      { inputTokens: 10, outputTokens: 5, totalTokens: 15 },
      { inputTokens: 10, outputTokens: 5, totalTokens: 15 },
    ],
    [
      'v2 with a total of its own',
      { inputTokens: 10, outputTokens: 5, totalTokens: 999 },
      { inputTokens: 10, outputTokens: 5, totalTokens: 999 },
    ],
    [
      'v2 without a total',
      { inputTokens: 10, outputTokens: 5, totalTokens: undefined },
      { inputTokens: 10, outputTokens: 5, totalTokens: 15 },
    ],
    [
      'v2 with cached and reasoning',
      { inputTokens: 10, outputTokens: 20, totalTokens: 30, reasoningTokens: 15, cachedInputTokens: 4 },
      { inputTokens: 10, cachedInputTokens: 4, outputTokens: 20, reasoningTokens: 15, totalTokens: 30 },
    ],
    ['v3', { inputTokens: input(10), outputTokens: output(5) }, { inputTokens: 10, outputTokens: 5, totalTokens: 15 }],
    [
      'v3 in full',
      {
        inputTokens: input(10, { noCache: 6, cacheRead: 3, cacheWrite: 1 }),
        outputTokens: output(20, { text: 5, reasoning: 15 }),
      },
      { inputTokens: 10, cachedInputTokens: 3, outputTokens: 20, reasoningTokens: 15, totalTokens: 30 },
    ],
    [
      'v3 by its parts',
      {
        inputTokens: input(undefined, { noCache: 6, cacheRead: 3, cacheWrite: 1 }),
        outputTokens: output(undefined, { text: 5, reasoning: 2 }),
      },
      { inputTokens: 10, cachedInputTokens: 3, outputTokens: 7, reasoningTokens: 2, totalTokens: 17 },
    ],
    [
      'zeros that were reported',
      { inputTokens: input(0), outputTokens: output(0) },
      { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
    ],
    [
      'a zero the record has',
      { inputTokens: input(7), outputTokens: output(0), raw: { prompt_tokens: 7, completion_tokens: 0 } },
      { inputTokens: 7, outputTokens: 0, totalTokens: 7 },
    ],
    ['one number only', { inputTokens: input(7), outputTokens: output(undefined) }, { inputTokens: 7 }],
  ])('%s', (_title, usage, expected) => {
    expect(usageFromAiSdk(usage)).toEqual(expected);
  });

  it.each<[string, unknown]>([
    ['missing', undefined],
    ['null', null],
    ['empty', {}],
    ['text', 'many'],
    ['v2 of nulls', { inputTokens: null, outputTokens: null, totalTokens: null }],
    ['texts', { inputTokens: '12', outputTokens: '3' }],
    ['negative', { inputTokens: -1, outputTokens: -1, totalTokens: -2 }],
    ['NaN', { inputTokens: NaN, outputTokens: NaN, totalTokens: NaN }],
    ['infinite', { inputTokens: Infinity, outputTokens: Number('1e400') }],
    ['v3 of nothing', { inputTokens: input(undefined), outputTokens: output(undefined), raw: undefined }],
    ['v3 of nulls', { inputTokens: { total: null }, outputTokens: null }],
    ['v3 NaN and negative', { inputTokens: input(NaN, { noCache: -5 }), outputTokens: output(-1) }],
    [
      'zeros made up by an SDK for an empty record',
      {
        inputTokens: input(0, { noCache: 0, cacheRead: 0 }),
        outputTokens: output(0, { text: 0, reasoning: 0 }),
        raw: {},
      },
    ],
    [
      'zeros made up for a record of nulls',
      {
        inputTokens: input(0, { noCache: 0, cacheRead: 0 }),
        outputTokens: output(0),
        raw: { prompt_tokens: null, prompt_tokens_details: { cached_tokens: null } },
      },
    ],
  ])('B093: %s stays unknown, and totals stay finite', (_title, usage) => {
    expect(usageFromAiSdk(usage)).toEqual({});
    expect(addUsage(NO_USAGE, usageFromAiSdk(usage))).toEqual({ ...NO_USAGE, unknownCalls: 1 });
  });

  it('keeps what is known beside what an SDK made up', () => {
    const usage = {
      inputTokens: input(12, { noCache: 12, cacheRead: 0 }),
      outputTokens: output(0, { text: 0, reasoning: 0 }),
      raw: { prompt_tokens: 12 },
    };
    expect(usageFromAiSdk(usage)).toEqual({ inputTokens: 12 });
  });

  it.each<[string, unknown]>([
    ['v2, cached inside', { inputTokens: 70838, cachedInputTokens: 69905, outputTokens: 1 }],
    ['v2, cached beside', { inputTokens: 933, cachedInputTokens: 69905, outputTokens: 1, totalTokens: 934 }],
    ['v3, cached inside', { inputTokens: input(70838, { noCache: 933, cacheRead: 69905 }), outputTokens: output(1) }],
    ['v3, cached beside', { inputTokens: input(933, { noCache: 933, cacheRead: 69905 }), outputTokens: output(1) }],
    [
      'v3, no total',
      { inputTokens: input(undefined, { noCache: 933, cacheRead: 69905, cacheWrite: 0 }), outputTokens: output(1) },
    ],
    [
      'v3, a negative rest',
      { inputTokens: input(933, { noCache: 933 - 69905, cacheRead: 69905 }), outputTokens: output(1) },
    ],
  ])('B094: %s comes to the same', (_title, usage) => {
    expect(usageFromAiSdk(usage)).toEqual({
      inputTokens: 70838,
      cachedInputTokens: 69905,
      outputTokens: 1,
      totalTokens: 70839,
    });
  });

  it('B094: cache writes beside the input are input', () => {
    expect(
      usageFromAiSdk({ inputTokens: input(10, { noCache: 10, cacheRead: 5, cacheWrite: 3 }), outputTokens: output(1) }),
    ).toMatchObject({ inputTokens: 18, totalTokens: 19 });
  });
});
