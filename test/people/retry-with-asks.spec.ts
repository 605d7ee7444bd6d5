import { describe, expect, it } from '@jest/globals';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { agent, tool, type ToolOptions } from '../support/engine-harness.js';
import { entriesOf } from '../support/journal-of.js';
import { ENGINE_STORES } from '../support/stores.js';
import { approve, asksOf, codeOf, deny, type Process, reaches, World } from './world.js';

/** One reply that asks for a free call and one that needs somebody; its 15 tokens are the whole budget. */
function scene(asking: { run?: Parameters<typeof tool>[1]; options: ToolOptions }) {
  const ran: string[] = [];
  const model = scriptedModel([{ calls: [{ name: 'free' }, { name: 'asking' }] }, { text: 'done' }], {
    place: 'transcript',
  });
  const hold = { on: false };
  const free = tool('free', async () => {
    if (hold.on) await new Promise(() => undefined);
    ran.push('free');
  });
  const gated = tool(
    'asking',
    async (input, context) => {
      await asking.run?.(input, context);
      ran.push('asking');
    },
    asking.options,
  );
  return { ran, hold, agents: agent(model, [free, gated]) };
}

const GATED = scene.bind(null, { options: { recovery: 'manual', asks: () => ({ reason: 'money' }) } });

async function failedByDenial(process: Process): Promise<{ id: string; withdrawn: string }> {
  const { id } = await process.runs.start({ agent: 'support', prompt: 'go', budget: { maxTotalTokens: 15 } });
  expect(await reaches(process, id, 'waiting')).toMatchObject({ waitingFor: ['approval', 'budget'] });
  const [ask] = await asksOf(process, id, 1);
  expect(await process.runs.denyBudget(id, { by: 'ann' })).toMatchObject({ status: 'failed', interactions: [] });
  return { id, withdrawn: ask?.id as string };
}

describe.each(ENGINE_STORES)('a retried run whose calls wait for people, on $name', (store) => {
  it('JRN-11, I11: an approval that was withdrawn with the failed run is asked for again, and the call is made once it is given', async () => {
    const { agents, ran } = GATED();
    const world = await World.over(store);
    let process = await world.process(agents);
    const { id, withdrawn } = await failedByDenial(process);
    process = await world.restart(agents);
    await process.runs.retry(id, { by: 'ann' });
    const [again] = await asksOf(process, id, 1);
    expect(again).toMatchObject({ operationKey: 'r1.m1.t1', tool: 'asking', reason: 'money', status: 'pending' });
    expect(await reaches(process, id, 'waiting')).toMatchObject({ waitingFor: ['approval', 'budget'] });

    // The old ask stays withdrawn (I7).
    expect(again?.id).not.toBe(withdrawn);
    expect(await codeOf(process.runs.respond(id, withdrawn, approve))).toBe('ALREADY_DECIDED');

    await process.runs.grantBudget(id, 100, { by: 'ann' });
    await process.recovery.reconcile();
    expect(await asksOf(process, id, 1)).toMatchObject([{ id: again?.id }]);
    process = await world.restart(agents);
    await process.runs.respond(id, again?.id as string, approve);
    await reaches(process, id, 'completed');
    expect(ran).toEqual(['free', 'asking']);
    await world.end();
  });

  it('JRN-11, PPL-5: such an ask may be denied, and withdrawn and made again any number of times', async () => {
    const { agents, ran } = GATED();
    const world = await World.over(store);
    const process = await world.process(agents);
    const { id } = await failedByDenial(process);
    for (let n = 0; n < 2; n++) {
      await process.runs.retry(id);
      await reaches(process, id, 'waiting');
      await process.runs.denyBudget(id, { by: 'ann' });
    }
    await process.runs.retry(id);
    await reaches(process, id, 'waiting');
    const [ask] = await asksOf(process, id, 1);
    await process.runs.respond(id, ask?.id as string, deny);
    await process.runs.resume(id, { budget: { maxTotalTokens: 500 } });
    await reaches(process, id, 'completed');
    expect(ran).toEqual(['free']);
    expect(await entriesOf(process.store, id, 'interaction.requested')).toHaveLength(4);
    await world.end();
  });

  it('JRN-11, PPL-8a: a method that had asked asks again, and does not repeat the steps it had done', async () => {
    const steps: string[] = [];
    const { agents, ran, hold } = scene({
      options: { recovery: 'manual' },
      run: async (_input, context) => {
        await context.step('reserve', () => void steps.push('reserve'));
        await context.requestApproval({ reason: 'now' });
      },
    });
    const world = await World.over(store);
    let process = await world.process(agents);
    hold.on = true;
    const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
    const [before] = await asksOf(process, id, 1);
    // The other call hangs; the run is taken over with a budget that leaves it nothing.
    await process.runs.resume(id, {
      allowRunningTakeover: true,
      confirmation: { by: 'ann', reason: 'it hangs' },
      budget: { maxTotalTokens: 15 },
    });
    expect(await reaches(process, id, 'waiting')).toMatchObject({ waitingFor: ['approval', 'budget'] });
    await process.runs.denyBudget(id, { by: 'ann' });

    hold.on = false;
    process = await world.restart(agents);
    await process.runs.retry(id);
    // A method is entered for it, which a budget that is used up does not allow.
    expect(await reaches(process, id, 'waiting')).toMatchObject({ waitingFor: ['budget'] });
    await process.runs.grantBudget(id, 100, { by: 'ann' });
    const [again] = await asksOf(process, id, 1);
    expect(again).toMatchObject({ kind: 'approval', reason: 'now', operationKey: before?.operationKey });
    expect(again?.id).not.toBe(before?.id);
    await process.runs.respond(id, again?.id as string, approve);
    await reaches(process, id, 'completed');
    expect([ran, steps]).toEqual([['free', 'asking'], ['reserve']]);
    await world.end();
  });
});
