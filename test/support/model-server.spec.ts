import { wireProblem, type WireMessage } from './model-server.js';

const user = (content: WireMessage['content'] = 'hi'): WireMessage => ({ role: 'user', content });
const calls = (...given: (string | [string, string])[]): WireMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: given.map((call) => {
    const [id, text] = typeof call === 'string' ? [call, '{}'] : call;
    return { id, type: 'function', function: { name: 't', arguments: text } };
  }),
});
const result = (id: string, content = 'ok'): WireMessage => ({ role: 'tool', tool_call_id: id, content });

describe('The strict model server', () => {
  it.each<[string, WireMessage[]]>([
    ['a conversation', [{ role: 'system', content: 's' }, user(), { role: 'assistant', content: 'x' }]],
    ['calls with their results', [user(), calls('a', 'b'), result('a'), result('b'), calls('c'), result('c')]],
    [
      'pairs, and text that only looks like an escape',
      [user('\u{1F511}'), user('\\ud83d'), calls(['a', '{"k":"\\ud83d\\udd11"}']), result('a', '"\\\\ud83d"')],
    ],
    ['media without text', [user([{ type: 'image_url', image_url: { url: 'data:' } }])]],
  ])('accepts %s', (_title, messages) => {
    expect(wireProblem(messages)).toBeNull();
  });

  it.each<[string, WireMessage[], RegExp]>([
    ['a call without its result', [user(), calls('a')], /call a has no result/],
    [
      'results out of order',
      [user(), calls('a', 'b'), result('b'), result('a')],
      /call a has no result in order \(found tool b\)/,
    ],
    ['a result without its call', [user(), result('a')], /without its call/],
    ['a result twice', [user(), calls('a'), result('a'), result('a')], /without its call/],
    ['an id twice', [user(), calls('a'), result('a'), calls('a'), result('a')], /duplicate call id a/],
    ['a call without an id', [user(), calls('')], /without id/],
    ['arguments that are cut', [user(), calls(['a', '{"x":']), result('a')], /not a JSON object/],
    ['arguments that are no object', [user(), calls(['a', '[]']), result('a')], /not a JSON object/],
    ['blank user text', [user(' ')], /blank user text/],
    ['a blank block', [user([{ type: 'text', text: '\u200b' }])], /blank user text/],
    ['a blank reply', [user(), { role: 'assistant', content: '' }], /blank assistant text/],
    ['a blank result', [user(), calls('a'), result('a', '\n')], /blank tool text/],
    ['a lone surrogate', [user('x\ud83d')], /lone surrogate in message 0/],
    ['a lone low surrogate', [user('\udd11x')], /lone surrogate/],
    ['a lone surrogate in a result', [user(), calls('a'), result('a', '\ud83d')], /lone surrogate in message 2/],
  ])('refuses %s', (_title, messages, problem) => {
    expect(wireProblem(messages)).toMatch(problem);
  });
});
