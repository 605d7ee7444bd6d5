import { setTimeout as delay } from 'node:timers/promises';
import type { Message, ModelClient, ModelReply, ModelRequest, ToolResultPart } from 'nestjs-agent-runs';

/**
 * Stands in for a language model, so that the sample runs without a key. It looks an order up, refunds it if asked to, leaves a note and answers. What it
 * says depends on the transcript alone: asked again after a crash, it says the same.
 */
export class DemoModel implements ModelClient {
  readonly name = 'demo';

  /** @param delayMs how long an answer takes: long enough to pull the plug in between */
  constructor(private readonly delayMs: number) {}

  async generate({ messages, signal }: ModelRequest): Promise<ModelReply> {
    await delay(this.delayMs, undefined, { signal });
    const from = messages.findLastIndex(({ role }) => role === 'user');
    const results = resultsOf(messages.slice(from + 1));
    return nextReply(textOf(messages[from]), results);
  }
}

function nextReply(request: string, results: Map<string, ToolResultPart>): ModelReply {
  const orderId = /\bo-\d+\b/i.exec(request)?.[0].toLowerCase();
  if (!orderId) return say('Which order is it about? Please give its number, like o-17.');
  const failed = [...results.values()].find(({ outcome }) => outcome !== 'success');
  if (failed) return say(`I could not finish this: ${failed.name} said ${JSON.stringify(failed.output)}.`);

  const order = results.get('lookup_order')?.output as { customer: string; amountCents: number } | undefined;
  if (!order) return callTool('lookup_order', { orderId });
  if (!/refund|money back/i.test(request)) {
    return say(`Order ${orderId} of ${order.customer} is over ${money(order.amountCents)}. What shall I do with it?`);
  }
  const amountCents = centsIn(request) ?? order.amountCents;
  if (!results.has('refund_payment')) return callTool('refund_payment', { orderId, amountCents });
  if (!results.has('add_note')) {
    return callTool('add_note', { orderId, text: `Refunded ${money(amountCents)} on request of the customer.` });
  }
  return say(`${money(amountCents)} of order ${orderId} are on their way back to ${order.customer}.`);
}

const say = (text: string): ModelReply => ({
  content: [{ type: 'text', text }],
  finishReason: 'stop',
  usage: { inputTokens: 40, outputTokens: 20, totalTokens: 60 },
});

const callTool = (name: string, args: object): ModelReply => ({
  content: [{ type: 'tool-call', callId: `call_${name}`, name, argumentsText: JSON.stringify(args) }],
  finishReason: 'tool-calls',
  usage: { inputTokens: 30, outputTokens: 10, totalTokens: 40 },
});

const money = (cents: number) => `${(cents / 100).toFixed(2)} EUR`;

/** `25`, `25.50` or `25,50` in a text, order numbers apart. */
function centsIn(text: string): number | undefined {
  const match = /(?<![\w.,-])(\d+)(?:[.,](\d\d))?(?![\w-])/.exec(text);
  return match ? Number(match[1]) * 100 + Number(match[2] ?? 0) : undefined;
}

function textOf(message: Message | undefined): string {
  if (!message) return '';
  if (typeof message.content === 'string') return message.content;
  return message.content.map((part) => (part.type === 'text' ? part.text : '')).join(' ');
}

function resultsOf(messages: readonly Message[]): Map<string, ToolResultPart> {
  const parts = messages.flatMap((message) => (message.role === 'tool' ? message.content : []));
  return new Map(parts.map((part) => [part.name, part]));
}
