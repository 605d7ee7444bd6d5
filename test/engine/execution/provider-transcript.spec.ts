import type { AssistantPart, Message } from '../../../lib/contracts/message.js';
import { isCallId, substituteCallId, transcriptFor } from '../../../lib/engine/execution/provider-transcript.js';
import { Sha256Digester } from '../../../lib/system/system-ports.js';

const digester = new Sha256Digester();
const NINE = /^[A-Za-z0-9]{9}$/;

const turn = (id: string, ...calls: { callId: string; name?: string; provider?: string }[]): Message[] => [
  {
    role: 'assistant',
    id,
    content: calls.map(({ name = 'look', ...call }): AssistantPart => ({
      type: 'tool-call',
      name,
      arguments: {},
      ...call,
    })),
  },
  {
    role: 'tool',
    content: calls.map(({ callId, name = 'look' }) => ({
      type: 'tool-result',
      callId,
      name,
      outcome: 'success',
      output: 1,
    })),
  },
];
const sent = (messages: readonly Message[], provider = 'mine', tools = ['look']) =>
  transcriptFor(messages, { provider, toolNames: new Set(tools) }, digester);
const namesOf = (messages: readonly Message[]): [string, string][] =>
  messages.flatMap((message) =>
    message.role === 'system'
      ? []
      : message.content.flatMap((part): [string, string][] => ('callId' in part ? [[part.callId, part.name]] : [])),
  );
const idsOf = (messages: readonly Message[]): string[] => namesOf(messages).map(([id]) => id);

it('leaves what its provider made as it is, and copies nothing', () => {
  const messages: Message[] = [
    { role: 'user', content: [{ type: 'text', text: 'hi' }] },
    ...turn('m1', { callId: 'functions.look:0', provider: 'mine' }, { callId: 'functions.look:1', provider: 'mine' }),
  ];
  const request = sent(messages);
  expect(request).toEqual(messages);
  request.forEach((message, index) => expect(message).toBe(messages[index]));
});

it('gives ids of another maker, or of none, nine letters and digits: call and result alike, the same in every request', () => {
  const messages = turn('m1', { callId: 'call_1', provider: 'other' }, { callId: 'call_2' });
  const ids = idsOf(sent(messages));
  for (const id of ids) expect(id).toMatch(NINE);
  expect(ids.slice(0, 2)).toEqual(ids.slice(2));
  expect(new Set(ids).size).toBe(2);
  const longer = [...messages, ...turn('m2', { callId: 'call_3', provider: 'mine' })];
  expect(idsOf(sent(longer))).toEqual([...ids, 'call_3', 'call_3']);
  expect(idsOf(messages)).toEqual(['call_1', 'call_2', 'call_1', 'call_2']);
});

it('sends no id twice, though two runs that went side by side gave the same', () => {
  const call = { callId: 'look:0', provider: 'mine' };
  const ids = idsOf(sent([...turn('a/m1', call), ...turn('b/m1', call), ...turn('c/m1', call, call)]));
  expect(ids[0]).toBe('look:0');
  expect(new Set(ids).size).toBe(4);
  expect(ids.slice(4, 6)).toEqual(ids.slice(6));
});

it.each([
  ['functions.search', 'functions_search'],
  ['search ', 'search__2'],
  ['ѕearch', 'tool__earch'],
  ['', 'tool_'],
  ['7up', 'tool_7up'],
  ['a'.repeat(200), 'a'.repeat(64)],
  ['$'.repeat(200), `tool_${'_'.repeat(59)}`],
  ['serch', 'serch'],
  ['search', 'search'],
])('sends the invented tool name %j as %s', (name, expected) => {
  const request = sent(turn('m1', { callId: 'a', provider: 'mine', name }), 'mine', ['search', 'search_']);
  expect(namesOf(request)).toEqual([
    ['a', expected],
    ['a', expected],
  ]);
  expect(expected).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
});

it('substitutes differ from what is taken', () => {
  const first = substituteCallId(digester, 'seed', new Set());
  expect(first).toMatch(NINE);
  const second = substituteCallId(digester, 'seed', new Set([first]));
  expect(second).toMatch(NINE);
  expect(second).not.toBe(first);
});

it('words that stand for no id are none', () => {
  for (const id of ['', ' ', '\n', 'null', 'NULL', ' None ', 'undefined', '\ud83d']) expect(isCallId(id)).toBe(false);
  for (const id of ['nullable', 'call_null', '0', 'ü']) expect(isCallId(id)).toBe(true);
});
