import { metadataRows, metadataValue } from '../../../lib/stores/typeorm/rows.js';

describe('metadata as rows', () => {
  it('decision metadata-is-compared-as-text: are found by their text, whatever type they were given with', () => {
    expect(metadataRows({ id: 'run-1', createdAt: 7, metadata: { tenant: 'a', amount: 1, vip: true } })).toEqual([
      ['run-1', 'tenant', 'a', 7],
      ['run-1', 'amount', '1', 7],
      ['run-1', 'vip', 'true', 7],
    ]);
  });

  it('JRN-9: hold no character that a database refuses', () => {
    expect(metadataValue('a\0b')).toBe('a\\u0000b');
    expect(metadataValue('\ud83d')).toBe('\\ud83d');
    expect(metadataValue('😀')).toBe('😀');
  });

  it('STO-5: fit an index, and stay apart when they are long', () => {
    const long = 'x'.repeat(191);
    expect(metadataValue(long)).toBe(long);
    expect(metadataValue(`${long}a`)).toHaveLength(71);
    expect(metadataValue(`${long}a`)).not.toBe(metadataValue(`${long}b`));
  });
});
