import { describe, expect, it } from '@jest/globals';
import type { ToolMessage } from '../../lib/contracts/message.js';
import type { ToolContext } from '../../lib/contracts/ports/tool-caller.port.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { agent, tool } from '../support/engine-harness.js';
import { ENGINE_STORES } from '../support/stores.js';
import { asksOf, codeOf, reaches, World } from './world.js';

/** An agent whose only tool, a `manual` one, does what the method says. */
function doing(method: (context: ToolContext) => unknown) {
  const model = scriptedModel([{ calls: [{ name: 'work' }] }, { text: 'done' }], { place: 'transcript' });
  return {
    agents: agent(model, [tool('work', (_input, context) => method(context), { recovery: 'manual' })]),
    result: () => (model.requests[1]?.messages.at(-1) as ToolMessage).content[0],
  };
}

const answered = { action: 'accept', by: 'ann', answers: { q: 'yes' } } as const;

describe.each(ENGINE_STORES)('a method that asks in unusual places, on $name', (store) => {
  it('PPL-8a: an ask inside a step that may be repeated is answered when the step is repeated', async () => {
    const { agents, result } = doing((context) =>
      context.step('work', () => context.ask({ id: 'q', text: 'Well?' }), { recovery: 'idempotent' }),
    );
    const world = await World.over(store);
    let process = await world.process(agents);
    const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
    await reaches(process, id, 'waiting');
    process = await world.restart(agents);
    const [ask] = await asksOf(process, id, 1);
    await process.runs.respond(id, ask?.id as string, answered);
    await reaches(process, id, 'completed');
    expect(result()).toMatchObject({ outcome: 'success', output: { q: 'yes' } });
    await world.end();
  });

  it('PPL-8a: inside a step that may not be repeated nobody is asked, and a person is told what is wrong', async () => {
    const { agents } = doing((context) => context.step('pay', () => context.ask({ id: 'q', text: 'Well?' })));
    const world = await World.over(store);
    const process = await world.process(agents);
    const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
    const stopped = await reaches(process, id, 'needs_attention', 'completed', 'waiting');
    expect(stopped).toMatchObject({ status: 'needs_attention', interactions: [] });
    expect(stopped.attention?.detail).toContain('in the middle of its step pay');
    await process.runs.resolveTool(id, { key: 'r1.m1.t0', output: 'looked up', by: 'ann' });
    await reaches(process, id, 'completed');
    await world.end();
  });

  // An unhandled rejection ends the process; here it fails the test.
  it('PPL-8a: asks that are made at once and awaited one by one leave no rejection unhandled', async () => {
    const { agents, result } = doing(async (context) => {
      const first = context.ask({ id: 'q', text: 'Well?' });
      const second = context.requestApproval({ reason: 'sure?' });
      const step = context.step('never', () => undefined);
      return { answers: await first, by: (await second).by, step: await step };
    });
    const world = await World.over(store);
    const process = await world.process(agents);
    const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
    const [question] = await asksOf(process, id, 1);
    await reaches(process, id, 'waiting');
    await process.runs.respond(id, question?.id as string, answered);
    await reaches(process, id, 'waiting');
    const [approval] = await asksOf(process, id, 1);
    expect(approval).toMatchObject({ kind: 'approval' });
    await process.runs.respond(id, approval?.id as string, { decision: 'approve', by: 'ann' });
    await reaches(process, id, 'completed');
    expect(result()).toMatchObject({ outcome: 'success', output: { answers: { q: 'yes' }, by: 'ann' } });
    await world.end();
  });

  it('PPL-3, PPL-8a: an approval inside a method that shows no arguments takes none: they would be said to be approved, and used by nobody', async () => {
    const { agents, result } = doing(({ requestApproval }) => requestApproval({ reason: 'Refund 100?' }));
    const world = await World.over(store);
    const process = await world.process(agents);
    const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
    const [ask] = await asksOf(process, id, 1);
    await reaches(process, id, 'waiting');
    const approve = { decision: 'approve', by: 'ann' } as const;
    const edited = process.runs.respond(id, ask?.id as string, { ...approve, arguments: { amount: 50 } });
    expect(await codeOf(edited)).toBe('INVALID_ARGUMENTS');
    await process.runs.respond(id, ask?.id as string, approve);
    await reaches(process, id, 'completed');
    expect(result()).toMatchObject({ outcome: 'success', output: { by: 'ann' } });
    await world.end();
  });
});
