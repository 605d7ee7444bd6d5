import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '../../lib/contracts/json.js';
import type { AgentDefinition } from '../../lib/contracts/agent-definition.js';
import type { Message, ToolResultPart } from '../../lib/contracts/message.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { agent, tool } from '../support/engine-harness.js';
import { ENGINE_STORES } from '../support/stores.js';
import { approve, asksOf, codeOf, deny, reaches, World } from './world.js';

/** Two deployments of one agent version: they disagree about how much may be refunded. */
function scene() {
  const ran: JsonObject[] = [];
  const deployed = (hash: string, most: number, options: Partial<AgentDefinition> = {}) => {
    const refund = tool('refund', (input) => void ran.push(input), {
      recovery: 'manual',
      asks: () => ({}),
      parse: (args) =>
        (args.amount as number) <= most ? { ok: true, input: args } : { ok: false, problems: ['amount is too large'] },
    });
    const model = scriptedModel([{ calls: [{ name: 'refund', args: { amount: 5 } }] }, { text: 'done' }], {
      place: 'transcript',
    });
    return agent(model, [refund], { hash, ...options });
  };
  return { ran, deployed };
}

const edited = (amount: number) => ({ ...approve, arguments: { amount } });

describe.each(ENGINE_STORES)('edited arguments during a rolling deploy, on $name', (store) => {
  it('PPL-3, JRN-7: are checked by the definition that will execute them, and by no other', async () => {
    const { ran, deployed } = scene();
    const world = await World.over(store);
    const old = await world.process(deployed('old', 10));
    const { id } = await old.runs.start({ agent: 'support', prompt: 'go' });
    const [ask] = await asksOf(old, id, 1);
    await reaches(old, id, 'waiting');
    const fresh = await world.office(deployed('new', 1_000));
    const respond = (process: typeof old, amount: number) =>
      codeOf(process.runs.respond(id, ask?.id as string, edited(amount)));
    expect(await respond(fresh, 500)).toBe('VERSION_UNAVAILABLE');
    expect(await respond(old, 500)).toBe('INVALID_ARGUMENTS');
    expect(await respond(old, 7)).toBe('accepted');
    await reaches(old, id, 'completed');
    expect(ran).toEqual([{ amount: 7 }]);
    // What is decided is told anywhere.
    expect([await respond(fresh, 7), await respond(fresh, 8)]).toEqual(['accepted', 'ALREADY_DECIDED']);
    await world.end();
  });

  it('JRN-7: a definition that accepts the runs of the one before it checks for them too', async () => {
    const { ran, deployed } = scene();
    const world = await World.over(store);
    const old = await world.process(deployed('old', 10));
    const { id } = await old.runs.start({ agent: 'support', prompt: 'go' });
    const [ask] = await asksOf(old, id, 1);
    await reaches(old, id, 'waiting');
    const fresh = await world.restart(deployed('new', 1_000, { definitionChange: 'accept' }));
    await fresh.runs.respond(id, ask?.id as string, edited(500));
    await reaches(fresh, id, 'completed');
    expect(ran).toEqual([{ amount: 500 }]);
    await world.end();
  });

  // B110
  it('PPL-3: __proto__ in them is an own key for the tool, now and after a restart, and changes no prototype', async () => {
    const text = '{"__proto__":{"isAdmin":true},"amount":1}';
    const seen: string[] = [];
    const refund = tool('refund', (input) => void seen.push(JSON.stringify(input)), { asks: () => ({}) });
    const model = scriptedModel([{ calls: [{ name: 'refund' }] }, { text: 'done' }], { place: 'transcript' });
    const world = await World.over(store);
    const first = await world.process(agent(model, [refund]));
    const { id } = await first.runs.start({ agent: 'support', prompt: 'go' });
    await reaches(first, id, 'waiting');
    const [ask] = await asksOf(first, id, 1);
    first.worker.pause();
    await first.runs.respond(id, ask!.id, { ...approve, arguments: JSON.parse(text) as JsonObject });
    const next = await world.restart(agent(model, [refund]));
    await reaches(next, id, 'completed');
    expect(seen).toEqual([text]);
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
    await world.end();
  });
});

/** A tool whose every call a person decides about, and what it was executed with. */
function gated(name = 'refund') {
  const ran: JsonObject[] = [];
  return { ran, refund: tool(name, (input) => (ran.push(input), 'paid'), { asks: () => ({}) }) };
}
const resultsIn = (messages: readonly Message[] = []): ToolResultPart[] =>
  messages.flatMap((message) => (message.role === 'tool' ? message.content : []));
const notice = 'Approved by ann with changed arguments: {"amount":10}.';

describe.each(ENGINE_STORES)('what an approver changed, on $name', (store) => {
  it('PPL-3: is told to the model with the result: after a restart, before steering, and in the next run of the session', async () => {
    const { ran, refund } = gated();
    const model = scriptedModel([{ calls: [{ name: 'refund', args: { amount: 100 } }] }, { text: 'done' }], {
      place: 'transcript',
    });
    const world = await World.over(store);
    const first = await world.process(agent(model, [refund]));
    const { id } = await first.runs.start({ agent: 'support', prompt: 'go', sessionId: 's' });
    const [ask] = await asksOf(first, id, 1);
    await reaches(first, id, 'waiting');
    await first.runs.steer(id, 'hurry', { sender: 'ann' });
    first.worker.pause();
    await first.runs.respond(id, ask!.id, edited(10));
    const second = await world.restart(agent(model, [refund]));
    await reaches(second, id, 'completed');
    expect(ran).toEqual([{ amount: 10 }]);
    const request = model.requests.at(-1)?.messages ?? [];
    expect(request.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user']);
    expect(request[1]).toMatchObject({ content: [{ arguments: { amount: 100 } }] });
    expect(resultsIn(request)).toMatchObject([{ outcome: 'success', output: { notice, result: 'paid' } }]);
    const edits = [{ by: 'ann', arguments: { amount: 10 } }];
    expect(resultsIn(await second.runs.messages(id))).toMatchObject([{ output: 'paid', edits }]);
    const third = await world.restart(agent(model, [refund]));
    const next = await third.runs.start({ agent: 'support', prompt: 'again', sessionId: 's' });
    const [another] = await asksOf(third, next.id, 1);
    await third.runs.respond(next.id, another!.id, deny);
    await reaches(third, next.id, 'completed');
    expect(resultsIn(model.requests.at(-1)?.messages)).toMatchObject([
      { outcome: 'success', output: { notice, result: 'paid' } },
      { outcome: 'denied', output: 'Denied by bob: too much' },
    ]);
    await world.end();
  });
});

describe('what an approver changed', () => {
  const [memory] = ENGINE_STORES;

  it('PPL-10: is told of its own call only, beside calls that were denied, approved as they were, or failed', async () => {
    const { refund } = gated();
    const fails = tool('fails', () => Promise.reject(new Error('no money')), { asks: () => ({}) });
    const call = (amount: number, name = 'refund') => ({ name, args: { amount } });
    const model = scriptedModel([{ calls: [call(1), call(2), call(3), call(4, 'fails')] }, { text: 'done' }]);
    const world = await World.over(memory!);
    const process = await world.process(agent(model, [refund, fails]));
    const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
    const asks = await asksOf(process, id, 4);
    const decisions = [edited(10), deny, { ...approve, arguments: { amount: 3 } }, { ...edited(10), note: 'at most' }];
    for (const [n, decision] of decisions.entries()) await process.runs.respond(id, asks[n]!.id, decision);
    await reaches(process, id, 'completed');
    expect(resultsIn(model.requests.at(-1)?.messages).map(({ output }) => output)).toEqual([
      { notice, result: 'paid' },
      'Denied by bob: too much',
      'paid',
      'Approved by ann with changed arguments (at most): {"amount":10}. no money',
    ]);
    await world.end();
  });

  it('PPL-8a: is told too where a method asked in the middle of its work', async () => {
    const refund = tool('refund', async (_input, { requestApproval }) => {
      const given = await requestApproval({ reason: 'so much?', arguments: { amount: 100 } });
      return given.arguments ? 'paid less' : 'paid';
    });
    const model = scriptedModel([{ calls: [{ name: 'refund' }] }, { text: 'done' }], { place: 'transcript' });
    const world = await World.over(memory!);
    const process = await world.process(agent(model, [refund]));
    const outputs: unknown[] = [];
    for (const amount of [10, 100]) {
      const { id } = await process.runs.start({ agent: 'support', prompt: `up to ${amount}` });
      const [ask] = await asksOf(process, id, 1);
      await process.runs.respond(id, ask!.id, edited(amount));
      await reaches(process, id, 'completed');
      outputs.push(resultsIn(model.requests.at(-1)?.messages)[0]?.output);
    }
    expect(outputs).toEqual([{ notice, result: 'paid less' }, 'paid']);
    await world.end();
  });
});

describe('what an approver adds', () => {
  it('PPL-3: is refused where the tool does not describe it, whatever its schema leaves open', async () => {
    const line = { type: 'object', properties: { sku: {} } };
    const inputSchema = {
      type: 'object',
      properties: {
        amount: {},
        lines: { type: 'array', items: line },
        free: { type: 'object' },
        open: { ...line, additionalProperties: true },
      },
    };
    const args = { amount: 5, extra: 1, lines: [{ sku: 'a', own: 1 }] };
    const ran: JsonObject[] = [];
    const pay = tool('pay', (input) => void ran.push(input), { asks: () => ({}), inputSchema });
    const model = scriptedModel([{ calls: [{ name: 'pay', args }] }, { text: 'done' }], { place: 'transcript' });
    const world = await World.over(ENGINE_STORES[0] as (typeof ENGINE_STORES)[number]);
    const process = await world.process(agent(model, [pay]));
    const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
    await reaches(process, id, 'waiting');
    const [ask] = await asksOf(process, id, 1);
    const edit = (edited: JsonObject) => process.runs.respond(id, ask!.id, { ...approve, arguments: edited });
    for (const [more, problem] of [
      [{ currency: 'EUR' }, 'currency is no argument of this tool'],
      [{ lines: [{ sku: 'a', price: 1 }] }, 'lines[0].price is no argument of this tool'],
      [{ constructor: 1 }, 'constructor is no argument of this tool'],
    ] as [JsonObject, string][])
      await expect(edit({ ...args, ...more })).rejects.toMatchObject({
        code: 'INVALID_ARGUMENTS',
        details: { problems: [problem] },
      });
    const fine = { ...args, amount: 4, free: { any: 1 }, open: { sku: 'b', any: 1 } };
    await edit(fine);
    await reaches(process, id, 'completed');
    expect(ran).toEqual([fine]);
    await world.end();
  });
});
