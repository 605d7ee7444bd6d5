import { thrownStack } from '../../../lib/engine/values/recorded-error.js';

describe('What a log says of a thrown value', () => {
  it('is its class, code, message and frames, and the head of its cause', () => {
    const cause = Object.assign(new Error('connect refused'), { code: 'ECONNREFUSED' });
    const [head, ...rest] = thrownStack(new TypeError('fetch failed', { cause })).split('\n');
    expect(head).toBe('TypeError: fetch failed');
    expect(rest[0]).toMatch(/^\s+at .*thrown-stack\.spec/);
    expect(rest.at(-1)).toBe('caused by Error ECONNREFUSED: connect refused');
  });

  it('has no secrets, and lets no message pass for frames or for another entry', () => {
    const error = new Error('no DB_PASSWORD=canary\n    at forged (x.js:1)\r\n[Nest] 1 LOG all is well');
    expect(thrownStack(error).split('\n')[0]).toBe(
      'Error: no DB_PASSWORD=[redacted]     at forged (x.js:1) [Nest] 1 LOG all is well',
    );
    expect(thrownStack(error).split('\n').slice(1).join()).not.toMatch(/forged|canary/);
  });

  it('is bounded, whatever was thrown', () => {
    const deep = new Error('x'.repeat(1_000_000));
    deep.stack = `Error: ${deep.message}\n${'    at f (y.js:1)\n'.repeat(100_000)}`;
    expect(thrownStack(deep).split('\n')).toHaveLength(13);
    for (const thrown of [
      undefined,
      null,
      'text',
      7,
      {},
      Object.create(null),
      new Proxy(
        {},
        {
          get: () => {
            throw new Error('no');
          },
        },
      ),
    ])
      // prettier-ignore
      expect(thrownStack(thrown).length).toBeLessThan(200);
  });
});
