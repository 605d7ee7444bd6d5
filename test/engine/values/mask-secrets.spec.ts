import { maskSecrets } from '../../../lib/engine/values/mask-secrets.js';

describe('B165: text that has the form of a credential is masked', () => {
  it.each([
    ['mysql://root:s3cret@db/app', 'mysql://[redacted]@db/app'],
    [
      'Incorrect API key provided: canary. Find yours at https://x.example/keys.',
      'Incorrect API key provided: [redacted] Find yours at https://x.example/keys.',
    ],
    ['bad key sk-proj-abcdef123456', 'bad key [redacted]'],
    ['header was "authorization": "Basic dXNlcjpwYXNz"', 'header was "authorization": "[redacted] [redacted]"'],
    ['sent Bearer abc.DEF-123', 'sent Bearer [redacted]'],
    ['jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln seen', 'jwt [redacted] seen'],
    ['?api_key=canary&x=1', '?api_key=[redacted]'],
    ['password=hunter2;', 'password=[redacted];'],
    ['rejected token CANARY-7f3a91', 'rejected token [redacted]'],
    ['AKIAABCDEFGHIJKLMNOP and ghp_abcdefghijklmnop1234', '[redacted] and [redacted]'],
  ])('%s', (text, expected) => {
    expect(maskSecrets(text)).toBe(expected);
  });

  it.each([
    "This model's maximum context length is 128000 tokens. However, you requested 130000 tokens.",
    "Duplicate entry 'a@b.example' for key 'users.UQ_97672ac88f789774dd47f7c8be3'",
    'Basic functionality is missing; the bearer of this message is right.',
    'order 550e8400-e29b-41d4-a716-446655440000 not found at https://shop.example/orders?id=7',
    'Unexpected token } in JSON at position 7',
  ])('and prose is not: %s', (text) => {
    expect(maskSecrets(text)).toBe(text);
  });

  it('is quick on large and hostile texts', () => {
    const started = performance.now();
    for (const unit of ['a.', 'key ', 'bearer ', 'eyJ', 'a://', 'password ', 'sk-', '"', ' '])
      maskSecrets(unit.repeat(64_000 / unit.length));
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});
