import { acceptedForm } from '../../../lib/http/input/accepted-form.js';

describe('The form in which events are wanted', () => {
  it.each([
    ['application/json', 'json'],
    ['APPLICATION/JSON; charset=utf-8', 'json'],
    ['application/json, text/plain, */*', 'json'],
    ['text/event-stream;q=0.5, application/json', 'json'],
    ['application/*', 'json'],
    ['text/event-stream', 'stream'],
    ['text/event-stream, application/json;q=0.9', 'stream'],
    ['application/json;q=0', 'stream'],
    ['application/json;q=x', 'stream'],
    ['*/*', 'stream'],
    ['', 'stream'],
    [undefined, 'stream'],
  ])('for Accept: %s is %s', (accept, form) => {
    expect(acceptedForm(accept)).toBe(form);
  });
});
