import { recordedError, MAX_ERROR_MESSAGE } from '../../../lib/engine/values/recorded-error.js';
import { ModelCallError } from '../../../lib/errors/run.errors.js';

const unreadable = new Proxy(
  {},
  {
    get() {
      throw new Error('no');
    },
    has() {
      throw new Error('no');
    },
  },
);

describe('B101: whatever is thrown is recorded', () => {
  it.each<[string, unknown, Record<string, unknown>]>([
    ['undefined', undefined, { code: 'TOOL_FAILED', message: 'undefined was thrown.' }],
    ['null', null, { code: 'TOOL_FAILED', message: 'null was thrown.' }],
    ['a text', 'text', { code: 'TOOL_FAILED', message: 'text' }],
    ['an empty text', '', { code: 'TOOL_FAILED', message: 'An empty text was thrown.' }],
    ['a number', 7, { code: 'TOOL_FAILED', message: '7 was thrown.' }],
    ['a symbol', Symbol('s'), { code: 'TOOL_FAILED', message: 'Symbol(s) was thrown.' }],
    ['an object with a numeric code', { code: 1 }, { code: '1', message: 'An object without a message was thrown.' }],
    ['an Error', new RangeError('r'), { code: 'TOOL_FAILED', message: 'r', name: 'RangeError' }],
    [
      'a system error',
      Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }),
      { code: 'ECONNREFUSED', message: 'refused', name: 'Error' },
    ],
    [
      'an Error whose message is a number',
      Object.assign(new Error('e'), { message: 5 }),
      { code: 'TOOL_FAILED', message: '5', name: 'Error' },
    ],
    [
      'an Error without a message',
      new Error(),
      { code: 'TOOL_FAILED', message: 'An error without a message was thrown.', name: 'Error' },
    ],
    [
      'an Error whose code is a sentence',
      Object.assign(new Error('e'), { code: 'not a code' }),
      { code: 'TOOL_FAILED', message: 'e', name: 'Error' },
    ],
    ['a Proxy that throws', unreadable, { code: 'TOOL_FAILED', message: 'An object without a message was thrown.' }],
  ])('%s', (_title, thrown, expected) => {
    expect(recordedError(thrown, 'TOOL_FAILED')).toEqual(expected);
  });

  it("keeps status and retryable of this package's own errors only", () => {
    expect(recordedError(new ModelCallError('busy', { status: 429, retryable: true, retryAfterMs: 5 }), 'X')).toEqual({
      code: 'MODEL_CALL_FAILED',
      name: 'ModelCallError',
      message: 'busy',
      status: 429,
      retryable: true,
    });
    expect(recordedError(Object.assign(new Error('e'), { status: 500, retryable: true }), 'X')).toEqual({
      code: 'X',
      name: 'Error',
      message: 'e',
    });
  });
});

describe('B165: a recorded error', () => {
  it('has no stack, cause, config, request or headers', () => {
    const thrown = Object.assign(new Error('failed', { cause: new Error('canary') }), {
      stack: 'canary',
      config: { headers: { Authorization: 'canary' } },
      request: 'canary',
      response: { data: 'canary' },
      parameters: ['canary'],
    });
    expect(JSON.stringify(recordedError(thrown, 'X'))).not.toContain('canary');
  });

  it('masks credentials in its message', () => {
    const message = 'connect postgres://app:canary@db:5432/x failed, Authorization: Bearer canary-1234567';
    expect(recordedError(new Error(message), 'X').message).toBe(
      'connect postgres://[redacted]@db:5432/x failed, Authorization: [redacted]',
    );
  });
});

it('B068: a recorded message is cut between code points', () => {
  for (const pad of ['', 'x']) {
    const { message } = recordedError(new Error(pad + '\u{1F511}'.repeat(MAX_ERROR_MESSAGE + 5)), 'X');
    expect([...message]).toHaveLength(MAX_ERROR_MESSAGE);
    expect(message).toBe(`${pad}${'\u{1F511}'.repeat(MAX_ERROR_MESSAGE - 1 - pad.length)}…`);
  }
});

it('B068: a recorded message is well-formed', () => {
  expect(recordedError(new Error('a\ud83d'), 'X').message).toBe('a\ufffd');
  expect(recordedError('x'.repeat(15_999) + '\u{1F511}', 'X').message).toHaveLength(MAX_ERROR_MESSAGE);
});
