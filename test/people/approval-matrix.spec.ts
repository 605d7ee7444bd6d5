import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '../../lib/contracts/json.js';
import type { ToolMessage } from '../../lib/contracts/message.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { agent, tool } from '../support/engine-harness.js';
import { EVERY_STORE } from '../support/stores.js';
import { until } from '../support/until.js';
import { approve, asksOf, codeOf, deny, type Process, reaches, World } from './world.js';

type Fate = 'approve' | 'deny' | 'edit' | 'expire';
type Where = 'in the process that runs it' | 'after a restart each' | 'in a process that executes nothing';

const FATES: readonly Fate[] = ['approve', 'deny', 'edit', 'expire'];
const WHERE: readonly Where[] = [
  'in the process that runs it',
  'after a restart each',
  'in a process that executes nothing',
];

/** What the model is told about a call. */
const TOLD: Record<Fate, (n: number) => object> = {
  approve: (n) => ({ outcome: 'success', output: { done: n } }),
  edit: (n) => ({
    outcome: 'success',
    output: {
      notice: `Approved by ann with changed arguments: {"n":${n + 100},"fate":"edit"}.`,
      result: { done: n + 100 },
    },
  }),
  deny: () => ({ outcome: 'denied', output: 'Denied by bob: too much' }),
  expire: () => ({ outcome: 'denied', output: 'Denied by system: Nobody decided in time.' }),
};

function scene(fates: readonly Fate[]) {
  const ledger: JsonObject[] = [];
  const model = scriptedModel(
    [{ calls: fates.map((fate, n) => ({ name: 'gated', args: { n, fate } })) }, { text: 'done' }],
    { place: 'transcript' },
  );
  const gated = tool(
    'gated',
    (input) => {
      ledger.push(input);
      return { done: input.n as number };
    },
    { recovery: 'manual', asks: ({ fate }) => ({ reason: 'money', expiresInMs: fate === 'expire' ? 1 : null }) },
  );
  return { ledger, model, agents: agent(model, [gated]) };
}

async function openAsk(process: Process, runId: string, n: number) {
  const { interactions } = await process.runs.pendingInteractions({ runId });
  return interactions.find(({ arguments: args }) => args?.n === n);
}

async function isOpen(process: Process, runId: string, n: number): Promise<boolean> {
  return (await openAsk(process, runId, n)) !== undefined;
}

async function decide(process: Process, runId: string, n: number, fate: Fate): Promise<void> {
  if (fate === 'expire') {
    await until(async () => {
      await process.recovery.expireInteractions();
      return !(await isOpen(process, runId, n));
    }, `ask ${n} being expired`);
    return;
  }
  const { id } = (await openAsk(process, runId, n)) as { id: string };
  if (fate === 'approve') await process.runs.respond(runId, id, approve);
  if (fate === 'edit') await process.runs.respond(runId, id, { ...approve, arguments: { n: n + 100, fate } });
  if (fate === 'deny') await process.runs.respond(runId, id, deny);
}

/** Decides the calls of one reply in an order; the result is what the model was told, in call order. */
async function play(world: World, fates: readonly Fate[], order: readonly number[], where: Where) {
  const { ledger, model, agents } = scene(fates);
  let process = await world.restart(agents);
  const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
  await reaches(process, id, 'waiting');
  if (where === 'in a process that executes nothing') process = await world.office(agents);
  for (const n of order) {
    if (where === 'after a restart each') process = await world.restart(agents);
    // A sweep may have withdrawn it with an earlier one.
    if (!(await isOpen(process, id, n))) continue;
    expect(await process.runs.get(id)).toMatchObject({ status: 'waiting', waitingFor: ['approval'] });
    expect(model.requests).toHaveLength(1);
    await decide(process, id, n, fates[n] as Fate);
  }
  if (where === 'after a restart each') process = await world.restart(agents);
  await reaches(process, id, 'completed');
  return { told: (model.requests[1]?.messages.at(-1) as ToolMessage).content, requests: model.requests.length, ledger };
}

function expected(fates: readonly Fate[]) {
  const ran = fates.flatMap((fate, n): JsonObject[] => {
    if (fate === 'approve') return [{ n, fate }];
    return fate === 'edit' ? [{ n: n + 100, fate }] : [];
  });
  return { told: fates.map((fate, n) => expect.objectContaining(TOLD[fate](n))), requests: 2, ledger: ran };
}

describe.each(EVERY_STORE)('the approval matrix on $name', (store) => {
  describe.each(WHERE)('decided %s', (where) => {
    it.each(FATES)('PPL-10: one call is told and executed as decided: %s', async (fate) => {
      const world = await World.over(store);
      expect(await play(world, [fate], [0], where)).toEqual(expected([fate]));
      await world.end();
    });

    it.each(FATES)('PPL-10: two calls, the first decided last: %s and any other', async (fate) => {
      const world = await World.over(store);
      for (const other of FATES) {
        const fates = [fate, other];
        // A sweep withdraws all that is late, so the others come first.
        const order = other === 'expire' && fate !== 'expire' ? [0, 1] : [1, 0];
        expect(await play(world, fates, order, where)).toEqual(expected(fates));
      }
      await world.end();
    });

    it('PPL-10: three calls in every order', async () => {
      const fates: Fate[] = ['approve', 'deny', 'edit'];
      const orders = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
      ];
      const world = await World.over(store);
      for (const order of orders) expect(await play(world, fates, order, where)).toEqual(expected(fates));
      await world.end();
    });

    it.each([0, 1, 2])(
      'PPL-10: a cancelled run withdraws what is open and executes nothing, %i of 3 decided',
      async (decided) => {
        const fates: Fate[] = ['approve', 'approve', 'approve'];
        const { ledger, model, agents } = scene(fates);
        const world = await World.over(store);
        let process = await world.process(agents);
        const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
        const asks = await asksOf(process, id, 3);
        await reaches(process, id, 'waiting');
        if (where === 'after a restart each') process = await world.restart(agents);
        if (where === 'in a process that executes nothing') process = await world.office(agents);
        for (let n = 0; n < decided; n++) await decide(process, id, n, 'approve');
        expect(await process.runs.cancel(id)).toMatchObject({ status: 'cancelled', interactions: [] });
        for (const ask of asks) expect(await codeOf(process.runs.respond(id, ask.id, approve))).toBe('ALREADY_DECIDED');
        expect((await process.runs.pendingInteractions({ runId: id })).interactions).toEqual([]);
        process = await world.restart(agents);
        expect((await process.runs.get(id)).status).toBe('cancelled');
        expect(ledger).toEqual([]);
        expect(model.requests).toHaveLength(1);
        await world.end();
      },
    );
  });
});
