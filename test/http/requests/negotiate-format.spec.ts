import { negotiateFormat } from '../../../lib/http/requests/request-headers.js';

describe('Whether JSON is acceptable', () => {
  it.each([
    ['application/json', true],
    ['APPLICATION/JSON; charset=utf-8', true],
    ['application/json, text/plain, */*', true],
    ['text/event-stream;q=0.5, application/json', true],
    ['text/event-stream, application/json;q=0.9', true],
    ['application/*', true],
    ['*/*', true],
    ['text/html,application/xhtml+xml,*/*;q=0.8', true],
    ['', true],
    [undefined, true],
    [['text/html', 'application/json'], true],
    ['text/event-stream', false],
    ['text/html', false],
    ['application/xml', false],
    ['application/json;q=0', false],
    ['application/json;q=0, */*', false],
    ['application/json;q=x', false],
  ])('for Accept: %s is %s', (accept, isAccepted) => {
    expect(negotiateFormat(accept)).toBe(isAccepted ? 'json' : null);
  });
});
