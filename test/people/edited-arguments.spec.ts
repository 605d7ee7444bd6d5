import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '../../lib/contracts/json.js';
import type { AgentDefinition } from '../../lib/contracts/agent-definition.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { agent, tool } from '../support/engine-harness.js';
import { ENGINE_STORES } from '../support/stores.js';
import { approve, asksOf, codeOf, reaches, World } from './world.js';

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
