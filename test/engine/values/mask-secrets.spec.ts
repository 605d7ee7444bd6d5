import { maskSecrets } from '../../../lib/engine/values/mask-secrets.js';

describe('B165: text that has the form of a credential is masked', () => {
  it.each([
    ['mysql://root:s3cret@db/app', 'mysql://[redacted]@db/app'],
    [
      'Incorrect API key provided: canary. Find yours at https://x.example/keys.',
      'Incorrect API key provided: [redacted] Find yours at https://x.example/keys.',
    ],
    ['bad key sk-proj-abcdef123456', 'bad key [redacted]'],
    ['header was "authorization": "Basic dXNlcjpwYXNz"', 'header was "authorization": "[redacted]"'],
    ['sent Bearer abc.DEF-123', 'sent Bearer [redacted]'],
    ['jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln seen', 'jwt [redacted] seen'],
    ['?api_key=canary&x=1', '?api_key=[redacted]'],
    ['password=hunter2;', 'password=[redacted];'],
    ['rejected token CANARY-7f3a91', 'rejected token [redacted]'],
    ['postgres://app:p@ss/w0rd@db:5432/x failed', 'postgres://[redacted]@db:5432/x failed'],
    ['DB_PASSWORD=hunter2,x)y next', 'DB_PASSWORD=[redacted] next'],
    ['AWS_SECRET_ACCESS_KEY=abc/def+1 next', 'AWS_SECRET_ACCESS_KEY=[redacted] next'],
    ['SMTP_PASS=x botToken=abc _authToken=npm', 'SMTP_PASS=[redacted] botToken=[redacted] _authToken=[redacted]'],
    ['Authorization: Token X', 'Authorization: [redacted]'],
    ["curl -H 'Authorization: Token abc' http://x", "curl -H 'Authorization: [redacted]' http://x"],
    ['authorization: Digest username="M", response="6629" tail', 'authorization: [redacted] tail'],
    ['Authorization: AWS4-HMAC-SHA256 Credential=A/2, SignedHeaders=host, Signature=b', 'Authorization: [redacted]'],
    ['Cookie: sid=abc; other=def\nnext', 'Cookie: [redacted]\nnext'],
    ['{"password":"my pass phrase"}', '{"password":"[redacted]"}'],
    ['{\\"password\\":\\"hunter2\\"}', '{\\"password\\":\\"[redacted]\\"}'],
    ["Map(1) { 'client_secret' => 'abc' }", "Map(1) { 'client_secret' => '[redacted]' }"],
    ['mysqldump --password hunter2 --all', 'mysqldump --password [redacted] --all'],
    ['<password>hun ter</password>', '<password>[redacted]</password>'],
    ['-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- tail', '[redacted] tail'],
    ['AKIAABCDEFGHIJKLMNOP and ghp_abcdefghijklmnop1234', '[redacted] and [redacted]'],
  ])('%s', (text, expected) => {
    expect(maskSecrets(text)).toBe(expected);
    expect(maskSecrets(expected)).toBe(expected);
  });

  it.each([
    "This model's maximum context length is 128000 tokens. However, you requested 130000 tokens.",
    "Duplicate entry 'a@b.example' for key 'users.UQ_97672ac88f789774dd47f7c8be3'",
    'Basic functionality is missing; the bearer of this message is right.',
    'order 550e8400-e29b-41d4-a716-446655440000 not found at https://shop.example/orders?id=7',
    'Unexpected token } in JSON at position 7',
    'GET http://localhost:3000/@vite/client and https://cdn.example.org/@scope/x failed',
    'Basic Authentication required; bypass: true, keyboard: 12345678, max_tokens: 4096',
  ])('and prose is not: %s', (text) => {
    expect(maskSecrets(text)).toBe(text);
  });

  it('takes time that is linear in the length of hostile texts', () => {
    const started = performance.now();
    for (const unit of [
      'a.',
      'key ',
      'key=',
      'bearer ',
      'eyJ-',
      'a://',
      '://a:b@',
      '://a:b',
      'password:"',
      'sk-',
      ',a="',
      ' ',
    ])
      maskSecrets(unit.repeat(1_000_000 / unit.length));
    // Minutes, if one of them were quadratic.
    expect(performance.now() - started).toBeLessThan(20_000);
  });
});
