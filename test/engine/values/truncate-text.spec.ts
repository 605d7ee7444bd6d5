import { truncateText } from '../../../lib/engine/values/plain-text.js';

describe('B068: truncation', () => {
  const key = '\u{1F511}';

  it.each([
    ['abc', 3, 'abc'],
    ['abcd', 3, 'ab…'],
    [key.repeat(3), 3, key.repeat(3)],
    [key.repeat(4), 3, `${key.repeat(2)}…`],
    [`a${key.repeat(3)}`, 3, `a${key}…`],
    [`${key}ab`, 2, `${key}…`],
    ['ab', 1, '…'],
    ['', 1, ''],
  ])('%j to %i code points', (text, length, expected) => {
    expect(truncateText(text, length)).toBe(expected);
  });

  it('never leaves half a pair, at any length', () => {
    const text = `a${key.repeat(20)}b`;
    for (let length = 1; length < 50; length++) {
      const cut = truncateText(text, length);
      expect(Buffer.from(cut).toString()).toBe(cut);
      expect([...cut].length).toBeLessThanOrEqual(length);
    }
  });
});
