import type { AssistantPart, Message } from '../../../lib/contracts/message.js';
import { problemsOf } from '../../../lib/model/scripted/transcript-problems.js';

const user = (text = 'hi'): Message => ({ role: 'user', content: [{ type: 'text', text }] });
const calls = (...ids: string[]): Message => ({
  role: 'assistant',
  content: ids.map((callId): AssistantPart => ({ type: 'tool-call', callId, name: 't', arguments: {} })),
});
const results = (...ids: string[]): Message => ({
  role: 'tool',
  content: ids.map((callId) => ({ type: 'tool-result', callId, name: 't', outcome: 'success', output: 'ok' })),
});
const says = (text: string): Message => ({ role: 'assistant', content: [{ type: 'text', text }] });

describe('I5: a transcript that every provider accepts', () => {
  it.each<[string, Message[]]>([
    ['nothing', []],
    ['a conversation', [{ role: 'system', content: 's' }, user(), says('hello')]],
    ['calls with their results in one message', [user(), calls('a', 'b'), results('a', 'b'), says('done')]],
    [
      'calls with a message per result',
      [user(), calls('a', 'b'), results('a'), results('b'), calls('c'), results('c')],
    ],
    [
      "a provider's own call, which owes nothing",
      [
        user(),
        { role: 'assistant', content: [{ type: 'opaque', value: { part: { type: 'tool-call', toolCallId: 'x' } } }] },
      ],
    ],
    [
      'results that are no text',
      [
        user(),
        calls('a'),
        { role: 'tool', content: [{ type: 'tool-result', callId: 'a', name: 't', outcome: 'success', output: null }] },
      ],
    ],
  ])('%s', (_title, messages) => {
    expect(problemsOf(messages)).toEqual([]);
  });
});

describe('I5: a transcript that a strict provider refuses', () => {
  it.each<[string, Message[], string[]]>([
    ['a call at the end', [user(), calls('a')], ['message 1: the call a has no result before the end']],
    [
      'a user message in between',
      [user(), calls('a', 'b'), results('a'), user()],
      ['message 1: the call b has no result before message 3 (user)'],
    ],
    [
      'a reply in between',
      [user(), calls('a'), says('x'), results('a')],
      [
        'message 1: the call a has no result before message 2 (assistant)',
        'message 3: the result of a has no open call right before it',
      ],
    ],
    [
      'results out of order',
      [user(), calls('a', 'b'), results('b', 'a')],
      ['message 2: the result of b comes before that of a'],
    ],
    [
      'a result twice',
      [user(), calls('a'), results('a', 'a')],
      ['message 2: the result of a has no open call right before it'],
    ],
    [
      'a result without a call',
      [user(), results('a')],
      ['message 1: the result of a has no open call right before it'],
    ],
    [
      'an id twice in a turn',
      [user(), calls('a', 'a'), results('a', 'a')],
      ['message 1: the call id a was used before'],
    ],
    [
      'an id twice over turns',
      [user(), calls('a'), results('a'), calls('a'), results('a')],
      ['message 3: the call id a was used before'],
    ],
    ['an empty id', [user(), calls(''), results('')], ['message 1: a call has no id']],
    [
      'blank text',
      [{ role: 'system', content: ' ' }, user('\u200b'), says('')],
      [
        'message 0: a text of the system message is blank',
        'message 1: a text of the user message is blank',
        'message 2: a text of the assistant message is blank',
      ],
    ],
    ['an empty message', [{ role: 'assistant', content: [] }], ['message 0: the assistant message is empty']],
    [
      'a lone surrogate, in a key too',
      [
        user('\ud83d'),
        { role: 'tool', content: [] },
        calls('a'),
        {
          role: 'tool',
          content: [{ type: 'tool-result', callId: 'a', name: 't', outcome: 'success', output: { '\ud83d': 1 } }],
        },
      ],
      [
        'message 1: the tool message is empty',
        'message 0: a text of the user message has a lone surrogate',
        'message 3: a text of the tool message has a lone surrogate',
      ],
    ],
  ])('%s', (_title, messages, problems) => {
    expect(problemsOf(messages)).toEqual(problems);
  });

  it('is checked only as far as asked', () => {
    const messages = [user(' '), says('\ud83d'), calls('a', 'a')];
    expect(problemsOf(messages, ['unicode'])).toEqual([
      'message 1: a text of the assistant message has a lone surrogate',
    ]);
    expect(problemsOf(messages, ['ids', 'blank'])).toHaveLength(2);
    expect(problemsOf(messages, [])).toEqual([]);
  });
});
