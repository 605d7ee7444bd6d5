import { describe, expect, it } from '@jest/globals';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { agent, tool } from '../support/engine-harness.js';
import { ENGINE_STORES } from '../support/stores.js';
import { approve, asksOf, reaches, World } from './world.js';

const COUNT = 12;
const CALLS = Array.from({ length: COUNT }, (_, n) => n);

describe.each(ENGINE_STORES)('the order of asks on $name', (store) => {
  it('PPL-1: the asks of one turn are listed in call order, the eleventh after the tenth', async () => {
    const model = scriptedModel([{ calls: CALLS.map((n) => ({ name: 'gated', args: { n } })) }, { text: 'done' }], {
      place: 'transcript',
    });
    const agents = agent(model, [tool('gated', ({ n }) => n, { recovery: 'manual', asks: () => ({}) })]);
    const world = await World.over(store);
    let process = await world.process(agents);
    const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
    const { interactions } = await reaches(process, id, 'waiting');
    expect(interactions.map(({ arguments: args }) => args?.n)).toEqual(CALLS);
    process = await world.restart(agents);
    const paged: unknown[] = [];
    for (let after: string | undefined; ;) {
      const page = await process.runs.pendingInteractions({ limit: 5, ...(after !== undefined && { after }) });
      paged.push(...page.interactions.map(({ arguments: args }) => args?.n));
      after = page.nextCursor;
      if (after === undefined) break;
    }
    expect(paged).toEqual(CALLS);
    for (const ask of interactions) await process.runs.respond(id, ask.id, approve);
    await reaches(process, id, 'completed');
    await world.end();
  });

  it('PPL-8a: the asks of one method have their ordinals, and the gate of its call has 0', async () => {
    const model = scriptedModel([{ calls: [{ name: 'curious' }] }, { text: 'done' }], { place: 'transcript' });
    const curious = tool(
      'curious',
      async (_input, context) => {
        await context.requestApproval({ reason: 'first' });
        await context.requestApproval({ reason: 'second' });
        return 'done';
      },
      { asks: () => ({ reason: 'gate' }) },
    );
    const world = await World.over(store);
    const process = await world.process(agent(model, [curious]));
    const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
    for (const [ordinal, reason] of ['gate', 'first', 'second'].entries()) {
      const [ask] = await asksOf(process, id, 1);
      expect(ask).toMatchObject({ ordinal, reason, operationKey: 'r1.m1.t0' });
      await process.runs.respond(id, ask!.id, approve);
    }
    await reaches(process, id, 'completed');
    await world.end();
  });
});
