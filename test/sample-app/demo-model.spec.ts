import type { Message } from '../../lib/contracts/message.js';
import { DemoModel } from '../../sample-app/src/model/demo.model.js';

const user = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });
const OUTPUTS: Record<string, object> = {
  lookup_order: { customer: 'Ada', amountCents: 4000 },
  refund_payment: { id: 'r' },
  add_note: { noteId: 'n' },
};

/** Plays a conversation to its end and tells what was called and said. */
async function play(text: string, outcomes: Record<string, 'error'> = {}) {
  const model = new DemoModel(0);
  const messages: Message[] = [user('Refund order o-1'), user(text)];
  const calls: [string, unknown][] = [];
  for (let i = 0; i < 10; i++) {
    const request = { instructions: '', messages, tools: [], signal: new AbortController().signal };
    const reply = await model.generate(request);
    expect(await model.generate(request)).toEqual(reply);
    const [part] = reply.content;
    if (part?.type === 'text') return { calls, said: part.text };
    if (part?.type !== 'tool-call') throw new Error('neither words nor a call');
    const { name, callId } = part;
    const args = JSON.parse((part as { argumentsText: string }).argumentsText);
    calls.push([name, args]);
    messages.push(
      { role: 'assistant', content: [{ type: 'tool-call', callId, name, arguments: args }] },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', callId, name, outcome: outcomes[name] ?? 'success', output: OUTPUTS[name] as never },
        ],
      },
    );
  }
  throw new Error('it never ends');
}

describe('The demo model', () => {
  it('looks an order up, refunds it, leaves a note and answers; the same request gets the same answer', async () => {
    const { calls, said } = await play('Please refund 25.50 for order o-17');
    expect(calls).toEqual([
      ['lookup_order', { orderId: 'o-17' }],
      ['refund_payment', { orderId: 'o-17', amountCents: 2550 }],
      ['add_note', { orderId: 'o-17', text: expect.stringContaining('25.50 EUR') }],
    ]);
    expect(said).toContain('25.50 EUR');
  });

  it.each([
    ['Refund order o-17', 4000],
    ['refund 7 euros of O-17', 700],
    ['o-17: I want my money back, 12,99 please', 1299],
  ])('%s', async (text, amountCents) => {
    expect((await play(text)).calls[1]).toEqual(['refund_payment', { orderId: 'o-17', amountCents }]);
  });

  it('asks for the order when it is not named, and does nothing that was not asked', async () => {
    expect(await play('Hello')).toMatchObject({ calls: [], said: expect.stringContaining('Which order') });
    expect((await play('Where is order o-17?')).calls.map(([name]) => name)).toEqual(['lookup_order']);
  });

  it('says so when a tool failed', async () => {
    expect((await play('Refund order o-17', { refund_payment: 'error' })).said).toContain('refund_payment');
  });

  it('stops when it is told to', async () => {
    const abort = new AbortController();
    const answer = new DemoModel(60_000).generate({
      instructions: '',
      messages: [user('x')],
      tools: [],
      signal: abort.signal,
    });
    abort.abort();
    await expect(answer).rejects.toMatchObject({ name: 'AbortError' });
  });
});
