import { describe, expect, it } from '@jest/globals';
import type { InteractionResponse } from '../../lib/contracts/run-requests.js';
import { askUserTool } from '../../lib/engine/ask-user-tool.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { agent, tool } from '../support/engine-harness.js';
import { ENGINE_STORES } from '../support/stores.js';
import { approve, asksOf, codeOf, deny, reaches, World } from './world.js';

describe.each(ENGINE_STORES)('the role of an approver on $name', (store) => {
  async function waiting(call: { name: string; args?: object }) {
    const ran: string[] = [];
    const model = scriptedModel([{ calls: [call as { name: string }] }, { text: 'done' }], { place: 'transcript' });
    const tools = [
      tool('wire', () => ran.push('wired'), { recovery: 'manual', asks: () => ({ approverRole: 'finance' }) }),
      tool('free', () => ran.push('free'), { recovery: 'manual', asks: () => ({}) }),
      askUserTool(),
    ];
    const world = await World.over(store);
    const process = await world.process(agent(model, tools));
    const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
    const [ask] = await asksOf(process, id, 1);
    const respond = (response: InteractionResponse) => process.runs.respond(id, ask!.id, response);
    return { world, process, id, ask: ask!, respond, ran };
  }

  it('PPL-2: with roles only a holder of the role decides, and the others learn nothing and change nothing', async () => {
    const { world, process, id, ask, respond, ran } = await waiting({ name: 'wire' });
    for (const roles of [[], ['support'], ['Finance'], ['finance '], ['fin', 'ance']]) {
      for (const decision of [approve, deny]) {
        await expect(respond({ ...decision, roles })).rejects.toMatchObject({
          code: 'FORBIDDEN',
          details: { interactionId: ask.id, approverRole: 'finance' },
        });
      }
    }
    expect(await process.runs.get(id)).toMatchObject({ status: 'waiting', interactions: [{ status: 'pending' }] });
    const roles = ['support', 'finance'];
    const decided = await respond({ ...approve, roles });
    expect(decided).toMatchObject({ status: 'approved', decision: { decision: 'approve', by: 'ann' } });
    expect(decided.decision).not.toHaveProperty('roles');
    await reaches(process, id, 'completed');
    expect(ran).toEqual(['wired']);
    // The identical decision again: the stored one for a holder, nothing for anybody else.
    expect((await respond({ ...approve, roles: ['finance'] })).decision).toEqual(decided.decision);
    expect(await codeOf(respond({ ...approve, roles: [] }))).toBe('FORBIDDEN');
    await world.end();
  });

  it('PPL-2: without roles the caller is trusted, and roles that are none are no way around', async () => {
    const { world, process, id, respond } = await waiting({ name: 'wire' });
    for (const roles of [undefined, null, 'finance', [1]])
      expect(await codeOf(respond({ ...approve, roles } as InteractionResponse))).toBe('INVALID_REQUEST');
    expect((await respond(approve)).status).toBe('approved');
    await reaches(process, id, 'completed');
    await world.end();
  });

  it.each(['free', 'ask_user'])('PPL-2: an ask without a role is decided with any roles: %s', async (name) => {
    const { world, process, id, respond } = await waiting({ name, args: { questions: [{ id: 'q', text: 'Sure?' }] } });
    await respond(
      name === 'free'
        ? { ...approve, roles: [] }
        : { action: 'accept', by: 'ann', roles: ['clerk'], answers: { q: 'yes' } },
    );
    await reaches(process, id, 'completed');
    await world.end();
  });
});
