import { negotiateFormat } from '../../../lib/http/requests/request-headers.js';

describe('STR-S1: the format of an answer', () => {
  it.each([
    ['application/json', 'json', 'json'],
    ['APPLICATION/JSON; charset=utf-8', 'json', 'json'],
    ['application/json, text/plain, */*', 'json', 'json'],
    ['text/event-stream;q=0.5, application/json', 'json', 'json'],
    ['text/event-stream, application/json;q=0.9', 'json', 'events'],
    ['text/event-stream, application/json', 'json', 'json'],
    ['text/event-stream, */*', 'json', 'json'],
    ['text/event-stream, */*;q=0.1', 'json', 'events'],
    ['application/*', 'json', 'json'],
    ['*/*', 'json', 'json'],
    ['text/html,application/xhtml+xml,*/*;q=0.8', 'json', 'json'],
    ['', 'json', 'json'],
    [undefined, 'json', 'json'],
    [['text/html', 'application/json'], 'json', 'json'],
    ['text/event-stream', null, 'events'],
    ['text/*', null, 'events'],
    ['text/html', null, null],
    ['application/xml', null, null],
    ['application/json;q=0', null, null],
    ['application/json;q=0, */*', null, 'events'],
    ['application/json;q=x', null, null],
    ['text/event-stream;q=0', null, null],
  ])('for Accept: %s is %s of JSON alone, %s where events are offered', (accept, alone, offered) => {
    expect(negotiateFormat(accept, ['json'])).toBe(alone);
    expect(negotiateFormat(accept, ['json', 'events'])).toBe(offered);
  });
});
