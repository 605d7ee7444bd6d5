import { describe, expect, it } from '@jest/globals';
import type { ToolMessage } from '../../lib/contracts/message.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { agent, tool } from '../support/engine-harness.js';
import { entriesOf } from '../support/journal-of.js';
import { signal } from '../support/signal.js';
import { allInteractions } from '../support/sound-journal.js';
import { ENGINE_STORES } from '../support/stores.js';
import { until } from '../support/until.js';
import { approve, asksOf, deny, reaches, World } from './world.js';

const TAKEOVER = { allowRunningTakeover: true, confirmation: { by: 'ops', reason: 'its machine is gone' } };

/** Gated calls c1 … and one free call that is at work until it is released. */
function scene(gatedCalls: number) {
  const ran: string[] = [];
  const free = signal();
  const freeEntered = signal();
  const model = scriptedModel(
    [
      {
        calls: [
          ...Array.from({ length: gatedCalls }, (_, n) => ({ name: 'gated', args: { n: n + 1 } })),
          { name: 'free', args: {} },
        ],
      },
      { text: 'done' },
    ],
    { place: 'transcript' },
  );
  const gated = tool(
    'gated',
    ({ n }) => {
      ran.push(`c${String(n)}`);
      return `did c${String(n)}`;
    },
    { recovery: 'manual', asks: () => ({}) },
  );
  const freeTool = tool(
    'free',
    async () => {
      freeEntered.resolve();
      await free.promise;
      ran.push('free');
      return 'did free';
    },
    { recovery: 'safe' },
  );
  const told = () => (model.requests[1]?.messages.at(-1) as ToolMessage).content.map(({ output }) => output);
  return { ran, free, freeEntered: freeEntered.promise, model, told, agents: agent(model, [gated, freeTool]) };
}

describe.each(ENGINE_STORES)('decisions while the run is executed, on $name', (store) => {
  it('PPL-1: asks can be seen and decided while the other calls of the turn are at work', async () => {
    const { free, freeEntered, agents, told, ran } = scene(2);
    const world = await World.over(store);
    const worker = await world.process(agents);
    const { id } = await worker.runs.start({ agent: 'support', prompt: 'go' });
    await freeEntered;
    const [c1, c2] = await asksOf(worker, id, 2);
    expect(await worker.runs.get(id)).toMatchObject({
      status: 'running',
      interactions: expect.arrayContaining([
        expect.objectContaining({ arguments: { n: 1 } }),
        expect.objectContaining({ arguments: { n: 2 } }),
      ]),
    });
    expect(await worker.runs.respond(id, c1!.id, approve)).toMatchObject({ status: 'approved' });
    expect(await worker.runs.respond(id, c2!.id, deny)).toMatchObject({ status: 'denied' });
    free.resolve();
    await reaches(worker, id, 'completed');
    expect(told()).toEqual(['did c1', 'Denied by bob: too much', 'did free']);
    expect(ran).toEqual(['free', 'c1']);
    await world.end();
  });

  // B048: the decision may fall anywhere around the end of the free call, in this process or in another one.
  it('PPL-10: two approvals around the end of a running call lead to one model request with three results', async () => {
    for (let turns = 0; turns < 12; turns++) {
      for (const elsewhere of [false, true]) {
        const { free, freeEntered, agents, told, ran, model } = scene(2);
        const world = await World.over(store);
        const worker = await world.process(agents);
        const decider = elsewhere ? await world.office(agents) : worker;
        const { id } = await worker.runs.start({ agent: 'support', prompt: 'go' });
        await freeEntered;
        const [c1, c2] = await asksOf(decider, id, 2);
        await decider.runs.respond(id, c1!.id, approve);
        const second = async () => {
          for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
          await decider.runs.respond(id, c2!.id, approve);
        };
        free.resolve();
        await second();
        await reaches(worker, id, 'completed');
        expect(told()).toEqual(['did c1', 'did c2', 'did free']);
        expect([...ran].sort()).toEqual(['c1', 'c2', 'free']);
        expect(model.requests).toHaveLength(2);
        expect((await allInteractions(worker.store, id)).map(({ status }) => status)).toEqual(['used', 'used']);
        await world.end();
      }
    }
  });

  it.each(['approve', 'deny'] as const)(
    'PPL-10: what was decided while a process that then died executed the run is not lost: %s',
    async (word) => {
      const { freeEntered, free, agents, told, ran } = scene(1);
      const world = await World.over(store);
      const doomed = await world.process(agents);
      const { id } = await doomed.runs.start({ agent: 'support', prompt: 'go' });
      await freeEntered;
      const office = await world.office(agents);
      const [c1] = await asksOf(office, id, 1);
      await office.runs.respond(id, c1!.id, word === 'approve' ? approve : deny);
      world.kill(doomed);
      free.resolve();
      const next = await world.another(agents);
      await next.runs.resume(id, TAKEOVER);
      await reaches(next, id, 'completed');
      expect(told()).toEqual([word === 'approve' ? 'did c1' : 'Denied by bob: too much', 'did free']);
      expect(ran.filter((name) => name === 'c1')).toHaveLength(word === 'approve' ? 1 : 0);
      await world.end();
    },
  );

  it('PPL-10: a decision is kept through a shutdown in the middle of the turn', async () => {
    const { freeEntered, free, agents, told } = scene(2);
    const world = await World.over(store);
    const first = await world.process(agents);
    const { id } = await first.runs.start({ agent: 'support', prompt: 'go' });
    await freeEntered;
    const [c1, c2] = await asksOf(first, id, 2);
    await first.runs.respond(id, c1!.id, approve);
    const drained = first.worker.drain();
    free.resolve();
    await drained;
    let next = await world.restart(agents);
    await reaches(next, id, 'waiting');
    expect((await next.runs.pendingInteractions({ runId: id })).interactions).toMatchObject([{ id: c2!.id }]);
    next = await world.restart(agents);
    await next.runs.respond(id, c2!.id, approve);
    await reaches(next, id, 'completed');
    expect(told()).toEqual(['did c1', 'did c2', 'did free']);
    await world.end();
  });

  it('PPL-1: what a reply asks for that came home during a shutdown is asked by the next process', async () => {
    const reply = signal();
    const model = scriptedModel([{ calls: [{ name: 'gated' }], after: reply.promise }, { text: 'done' }], {
      place: 'transcript',
    });
    const agents = agent(model, [tool('gated', () => 'did it', { recovery: 'manual', asks: () => ({}) })]);
    const world = await World.over(store);
    const first = await world.process(agents);
    const { id } = await first.runs.start({ agent: 'support', prompt: 'go' });
    await model.requested(1);
    const drained = first.worker.drain();
    reply.resolve();
    await drained;
    expect(await first.runs.get(id)).toMatchObject({ status: 'pending', interactions: [] });
    const next = await world.restart(agents);
    await reaches(next, id, 'waiting');
    const [ask] = await asksOf(next, id, 1);
    await next.runs.respond(id, ask!.id, approve);
    await reaches(next, id, 'completed');
    expect(model.requests).toHaveLength(2);
    await world.end();
  });

  it('PPL-6: an answer that comes with the shutdown of its process is left to the next one', async () => {
    const model = scriptedModel([{ calls: [{ name: 'gated' }] }, { text: 'done' }], { place: 'transcript' });
    const agents = agent(model, [tool('gated', () => 'did it', { recovery: 'manual', asks: () => ({}) })]);
    const world = await World.over(store);
    const first = await world.process(agents, { pollMs: 60_000, pollIdleMs: 60_000 });
    const { id } = await first.runs.start({ agent: 'support', prompt: 'go' });
    await reaches(first, id, 'waiting');
    const [ask] = await asksOf(first, id, 1);
    // It has seen the run to be claimed, and the shutdown begins before it can claim it.
    const gate = first.store.hold('due', { after: true });
    await first.runs.respond(id, ask!.id, approve);
    await gate.reached;
    const drained = first.worker.drain();
    gate.open();
    await drained;
    expect(await first.store.liveWorkers()).toEqual([]);
    const next = await world.restart(agents);
    await reaches(next, id, 'completed');
    await world.end();
  });

  it('PPL-10: a decision made while the run heads for attention is taken up once the blocked call is resolved', async () => {
    const free = signal();
    const entered = signal();
    const model = scriptedModel([{ calls: [{ name: 'gated' }, { name: 'odd' }] }, { text: 'done' }], {
      place: 'transcript',
    });
    const odd = tool(
      'odd',
      async () => {
        entered.resolve();
        await free.promise;
        return new Map();
      },
      { recovery: 'manual' },
    );
    const agents = agent(model, [tool('gated', () => 'did it', { asks: () => ({}) }), odd]);
    const world = await World.over(store);
    const process = await world.process(agents);
    const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
    await entered.promise;
    const [ask] = await asksOf(process, id, 1);
    await process.runs.respond(id, ask!.id, approve);
    free.resolve();
    const blocked = await reaches(process, id, 'needs_attention');
    await process.runs.resolveTool(id, { key: blocked.attention!.operationKey!, output: 'looked up', by: 'ops' });
    await reaches(process, id, 'completed');
    expect((model.requests[1]?.messages.at(-1) as ToolMessage).content.map(({ output }) => output)).toEqual([
      'did it',
      'looked up',
    ]);
    await world.end();
  });

  it('PPL-8a: a tool that asks while an earlier ask has just been decided is asked for too', async () => {
    const free = signal();
    const entered = signal();
    const model = scriptedModel([{ calls: [{ name: 'gated' }, { name: 'asking' }] }, { text: 'done' }], {
      place: 'transcript',
    });
    const asking = tool('asking', async (_input, context) => {
      entered.resolve();
      await free.promise;
      return context.ask({ id: 'why', text: 'Why?' });
    });
    const agents = agent(model, [tool('gated', () => 'did it', { asks: () => ({}) }), asking]);
    const world = await World.over(store);
    const process = await world.process(agents);
    const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
    await entered.promise;
    const [gate] = await asksOf(process, id, 1);
    await process.runs.respond(id, gate!.id, approve);
    free.resolve();
    const [question] = await asksOf(process, id, 1);
    expect(question).toMatchObject({ kind: 'question', questions: [{ id: 'why' }] });
    await reaches(process, id, 'waiting');
    await process.runs.respond(id, question!.id, { action: 'accept', by: 'ann', answers: { why: 'because' } });
    await reaches(process, id, 'completed');
    expect((model.requests[1]?.messages.at(-1) as ToolMessage).content.map(({ output }) => output)).toEqual([
      'did it',
      { why: 'because' },
    ]);
    expect(await entriesOf(process.store, id, 'interaction.requested')).toHaveLength(2);
    await world.end();
  });

  it('PPL-1: a call that asks for no one runs to its end before the run waits, and the run waits for exactly what is open', async () => {
    const { free, freeEntered, agents, model } = scene(1);
    const world = await World.over(store);
    const process = await world.process(agents);
    const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
    await freeEntered;
    await asksOf(process, id, 1);
    free.resolve();
    const run = await reaches(process, id, 'waiting');
    expect(run).toMatchObject({ waitingFor: ['approval'], interactions: [{ tool: 'gated' }] });
    expect(await entriesOf(process.store, id, 'tool.completed')).toHaveLength(1);
    expect(model.requests).toHaveLength(1);
    await until(() => process.worker.status().activeRuns === 0, 'the slot is free');
    await world.end();
  });
});
