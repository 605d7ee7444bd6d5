import {
  APICallError,
  InvalidResponseDataError,
  JSONParseError,
  TypeValidationError,
  UnsupportedFunctionalityError,
} from '@ai-sdk/provider';
import { modelCallError } from '../../../lib/model/ai-sdk/model-call-failure.js';
import { ModelCallError } from '../../../lib/errors/run.errors.js';

const call = { name: 'acme', modelId: 'gpt-4o-2024-08-06-preview', now: Date.UTC(2026, 10, 29), isSent: false };
const answered = (statusCode: number | undefined, more: Partial<ConstructorParameters<typeof APICallError>[0]> = {}) =>
  new APICallError({
    message: 'said no',
    url: 'https://h.example/?key=canary',
    requestBodyValues: { messages: 'canary' },
    ...(statusCode === undefined ? {} : { statusCode }),
    ...more,
  });
const fail = (message: string, more: object) => Object.assign(new Error(message), more);

describe('MOD-2: what may pass is decided by us', () => {
  it.each<[string, unknown, boolean, RegExp]>([
    [
      'an answer the SDK calls final',
      answered(503, { isRetryable: false }),
      true,
      /^The model acme answered 503: said no\.$/,
    ],
    ['an answer the SDK calls passing', answered(400, { isRetryable: true }), false, /answered 400/],
    ['an unknown 4xx', answered(418), false, /answered 418/],
    ['an answer of another SDK', fail('no', { statusCode: 529 }), true, /answered 529/],
    ['a status under its other name', fail('no', { status: 404 }), false, /answered 404/],
    [
      "a network failure in the SDK's words",
      answered(undefined, { cause: fail('connect', { code: 'ECONNREFUSED' }) }),
      true,
      /ECONNREFUSED/,
    ],
    [
      'a network failure far down',
      new Error('a', { cause: new Error('b', { cause: fail('c', { code: 'ENOTFOUND' }) }) }),
      true,
      /ENOTFOUND/,
    ],
    [
      'an answer whose body broke off',
      answered(200, { cause: fail('terminated', { code: 'UND_ERR_SOCKET' }) }),
      true,
      /connection broke/,
    ],
    [
      'a 401 over a broken connection',
      answered(401, { cause: fail('x', { code: 'ECONNRESET' }) }),
      false,
      /answered 401/,
    ],
    ['fetch failed', new TypeError('fetch failed'), true, /fetch failed/],
    [
      'an expired certificate',
      new TypeError('fetch failed', { cause: fail('expired', { code: 'CERT_HAS_EXPIRED' }) }),
      false,
      /TypeError/,
    ],
    ['a time-out of the SDK', new DOMException('late', 'TimeoutError'), true, /TimeoutError/],
    [
      'a reply without choices',
      new InvalidResponseDataError({ data: { canary: 1 }, message: 'no choices' }),
      true,
      /could not be used/,
    ],
    [
      'a reply that does not parse',
      new JSONParseError({ text: 'canary', cause: new Error() }),
      true,
      /could not be used/,
    ],
    [
      'a reply of another form',
      new TypeValidationError({ value: 'canary', cause: new Error() }),
      true,
      /could not be used/,
    ],
    [
      'a request the provider cannot express',
      new UnsupportedFunctionalityError({ functionality: 'video' }),
      false,
      /video/,
    ],
    ['a fault of code', new TypeError('x is not a function'), false, /not a function/],
    ['an error nobody knows', new Error('odd'), true, /failed \(Error\): odd\./],
    ['undefined', undefined, true, /unknown error/],
    ['a text', 'odd', true, /odd/],
    ['a loop of causes', (() => { const error = new Error('odd'); error.cause = error; return error; })(), true, /odd/], // prettier-ignore
  ])('%s', (_title, thrown, retryable, message) => {
    const error = modelCallError(thrown, call);
    expect(error).toBeInstanceOf(ModelCallError);
    expect({ retryable: error.retryable, message: error.message }).toEqual({
      retryable,
      message: expect.stringMatching(message),
    });
    expect(JSON.stringify([error.message, error.cause, error.details])).not.toContain('canary');
  });

  it('R209: a fault in the code of a provider that was asked may be about its answer', () => {
    const thrown = new TypeError("Cannot read properties of undefined (reading 'message')");
    expect(modelCallError(thrown, call).retryable).toBe(false);
    expect(modelCallError(thrown, { ...call, isSent: true }).retryable).toBe(true);
    const certificate = new TypeError('fetch failed', { cause: fail('expired', { code: 'CERT_HAS_EXPIRED' }) });
    expect(modelCallError(certificate, { ...call, isSent: true }).retryable).toBe(false);
  });

  it.each<[string, number, unknown, boolean, RegExp]>([
    [
      'R221: vLLM, at the root',
      400,
      { object: 'error', message: 'too many tokens', code: 400 },
      false,
      /too many tokens/,
    ],
    [
      'R221: FastAPI, a list of details',
      422,
      { detail: [{ loc: ['body', 'tools', 0], msg: 'extra fields', type: 'value_error' }] },
      false,
      /body\.tools\.0: extra fields/,
    ],
    ['R221: FastAPI, a text', 503, { detail: 'No worker is free' }, true, /No worker is free/],
    ['R221: Gemini, a list', 400, [{ error: { code: 400, message: 'no signature' } }], false, /no signature/],
    ['R221: a code at the root', 200, { object: 'error', message: 'slow down', code: 429 }, true, /answered 429: slow/],
    ['R211: Groq, an output that was no call', 400, { error: { message: 'x', code: 'tool_use_failed' } }, true, /400/],
    [
      'R211: Groq, an output that was no JSON',
      400,
      { error: { message: 'x', code: 'json_validate_failed' } },
      true,
      /400/,
    ],
    [
      'a request beyond the limit',
      429,
      { error: { message: 'Request too large for m on TPM: Limit 3, Requested 4', code: 'rate_limit_exceeded' } },
      false,
      /too large/,
    ],
    [
      'a request that is throttled',
      429,
      { error: { message: 'Rate limit reached for m on TPM: Limit 3, Used 3' } },
      true,
      /Rate limit/,
    ],
    [
      'a 200 with an error that has only text',
      200,
      { error: { message: 'Model not loaded' } },
      false,
      /Model not loaded/,
    ],
    ['a 200 with an error that is text', 200, { error: 'invalid key' }, false, /invalid key/],
    [
      'a 200 with a text that speaks of now',
      200,
      { error: { message: 'Upstream is overloaded, try again' } },
      true,
      /try again/,
    ],
    ['a prompt that Gemini blocked', 200, { promptFeedback: { blockReason: 'SAFETY' } }, false, /blocked \(SAFETY\)/],
  ])('%s', (_title, statusCode, body, retryable, message) => {
    const error = modelCallError(answered(statusCode, { responseBody: JSON.stringify(body) }), {
      ...call,
      isSent: true,
    });
    expect({ retryable: error.retryable, message: error.message }).toEqual({
      retryable,
      message: expect.stringMatching(message),
    });
  });

  it('leaves an error that is one already as it is', () => {
    const error = new ModelCallError('ours', { retryable: false });
    expect(modelCallError(error, call)).toBe(error);
  });

  it('B089: counts an announced date from now', () => {
    const responseHeaders = { 'retry-after': new Date(call.now + 3_000).toUTCString() };
    expect(modelCallError(answered(429, { responseHeaders }), call).retryAfterMs).toBe(3_000);
  });

  it('B165: masks long tokens, yet not the name of the model', () => {
    const error = modelCallError(
      answered(404, { message: `The model ${call.modelId} is not open to org-0123456789abcdef0123` }),
      call,
    );
    expect(error.message).toBe(`The model acme answered 404: The model ${call.modelId} is not open to [redacted].`);
  });
});
