import { describe, expect, it } from '@jest/globals';
import type { JournalEntry } from '../../lib/contracts/journal-entry.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import type { Scripted } from '../../lib/model/scripted/script-step.js';
import { agent, tool } from '../support/engine-harness.js';
import { entriesOf, journalOf, rowOf } from '../support/journal-of.js';
import { signal } from '../support/signal.js';
import { ENGINE_STORES } from '../support/stores.js';
import { until } from '../support/until.js';
import { approve, asksOf, type Process, reaches, World } from './world.js';

const NOTE = { by: 'ann', reason: 'wrong order' };
const SLOW: Scripted[] = [{ calls: [{ name: 'slow' }] }, { text: 'done' }];

function scene(script: Scripted[] = SLOW, options: Parameters<typeof agent>[2] = {}) {
  const release = signal();
  const entered = signal();
  const slow = tool('slow', async () => {
    entered.resolve();
    await release.promise;
    return 'slow';
  });
  const gated = tool('gated', () => 'gated', { asks: () => ({}) });
  const model = scriptedModel(script, { place: 'transcript' });
  return { model, release, entered: entered.promise, agents: agent(model, [slow, gated], options) };
}

/** Learns of nothing but what it does itself. */
const blind = { pollMs: 60_000, pollIdleMs: 60_000 };

async function begun(process: Process): Promise<string> {
  return (await process.runs.start({ agent: 'support', prompt: 'go' })).id;
}

const requests = (process: Process, id: string) => entriesOf(process.store, id, 'run.interrupt_requested');

/** What the journal says about stops and ends, in order. */
async function stops(process: Process, id: string): Promise<string[]> {
  const told: ReadonlySet<JournalEntry['type']> = new Set([
    'run.interrupt_requested',
    'run.interrupted',
    'run.suspended',
    'run.resume_requested',
    'run.completed',
    'run.cancelled',
    'run.timed_out',
  ]);
  return (await journalOf(process.store, id)).filter(({ type }) => told.has(type)).map(({ type }) => type);
}

describe.each(ENGINE_STORES)('a stop that is wanted, on $name', (store) => {
  it.each(['here', 'elsewhere'])('EVT-2: is told at once with who asked and why, asked %s', async (where) => {
    const { agents, release, entered } = scene();
    const world = await World.over(store);
    const process = await world.process(agents);
    const asker = where === 'here' ? process : await world.office(agents);
    const id = await begun(process);
    await entered;
    await asker.runs.interrupt(id, NOTE);
    if (where === 'elsewhere') await process.worker.tick();
    // The tool is still at work.
    await until(async () => (await requests(process, id)).length > 0, 'the request being told');
    expect(await process.runs.get(id)).toMatchObject({ status: 'running' });
    const { events } = await asker.runs.events(id);
    expect(events.at(-1)).toMatchObject({ type: 'run.interrupt_requested', data: NOTE });
    release.resolve();
    await reaches(process, id, 'interrupted');
    expect(await stops(process, id)).toEqual(['run.interrupt_requested', 'run.interrupted']);
    await world.end();
  });

  it('EVT-4: observers and lifecycle events are told of it without its words', async () => {
    const { agents, release, entered } = scene();
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await begun(process);
    await entered;
    await process.runs.interrupt(id, NOTE);
    release.resolve();
    await reaches(process, id, 'interrupted');
    const { events } = await process.runs.events(id, { projection: 'lifecycle' });
    const [requested] = events.filter(({ type }) => type === 'run.interrupt_requested');
    expect(Object.keys(requested?.data ?? {})).toEqual(['at', 'by']);
    expect(process.told.filter(({ type }) => type === 'run.interrupt_requested')).toMatchObject([{ details: {} }]);
    await world.end();
  });

  it('EVT-2: is told once, for whoever asked first', async () => {
    const { agents, release, entered } = scene();
    const world = await World.over(store);
    const process = await world.process(agents);
    const office = await world.office(agents);
    const id = await begun(process);
    await entered;
    await Promise.all([
      office.runs.interrupt(id, NOTE).then(() => office.runs.interrupt(id, { by: 'bob' })),
      process.worker.tick(),
    ]);
    await process.runs.interrupt(id, { by: 'carl' });
    release.resolve();
    await reaches(process, id, 'interrupted');
    const told = await requests(process, id);
    expect(told).toHaveLength(1);
    expect((await rowOf(process.store, id)).interruptRequest).toBeNull();
    await world.end();
  });

  it('EVT-2: that came too late is told before the end it did not change', async () => {
    const reply = signal();
    const { agents, model } = scene([{ text: 'done', after: reply.promise }]);
    const world = await World.over(store);
    const process = await world.process(agents, blind);
    const office = await world.office(agents);
    const id = await begun(process);
    await model.requested(1);
    await office.runs.interrupt(id, NOTE);
    reply.resolve();
    await reaches(office, id, 'completed');
    expect(await stops(office, id)).toEqual(['run.interrupt_requested', 'run.completed']);
    expect(await requests(office, id)).toMatchObject([NOTE]);
    await world.end();
  });

  it('EVT-2: and was overtaken by a cancel is told by the cancel', async () => {
    const { agents, release, entered } = scene();
    const world = await World.over(store);
    const process = await world.process(agents, blind);
    const office = await world.office(agents);
    const id = await begun(process);
    await entered;
    await office.runs.interrupt(id, NOTE);
    await office.runs.cancel(id, { by: 'bob' });
    release.resolve();
    expect(await stops(office, id)).toEqual(['run.interrupt_requested', 'run.cancelled']);
    expect(office.told.map(({ type, sequence }) => [type, sequence])).toEqual(
      (await journalOf(office.store, id)).slice(-2).map(({ type, sequence }) => [type, sequence]),
    );
    await world.end();
  });

  it('EVT-2: is told by the step that waits for a person, and taken back by whoever resumes', async () => {
    const { agents, release, entered } = scene([{ calls: [{ name: 'slow' }, { name: 'gated' }] }, { text: 'done' }]);
    const world = await World.over(store);
    const manual = { resumeAfterAnswers: 'manual' } as const;
    const process = await world.process(agents, { ...blind, ...manual });
    const office = await world.office(agents, manual);
    const id = await begun(process);
    await entered;
    const [ask] = await asksOf(office, id, 1);
    await office.runs.interrupt(id, NOTE);
    release.resolve();
    await reaches(office, id, 'waiting');
    expect((await rowOf(office.store, id)).interruptRequest).toMatchObject({ ...NOTE, journaled: true });
    await process.runs.respond(id, ask!.id, approve);
    await process.runs.resume(id);
    await reaches(office, id, 'completed');
    expect(await stops(office, id)).toEqual([
      'run.interrupt_requested',
      'run.suspended',
      'run.resume_requested',
      'run.completed',
    ]);
    await world.end();
  });

  it.each([
    ['noted', 'before its owner knew'],
    ['told', 'after its owner had told it'],
  ])('RUN-3: survives an owner that dies, and is told once: only %s, %s', async (how) => {
    const { agents, entered } = scene();
    const world = await World.over(store);
    const lease = { leaseMs: 200 };
    const process = await world.process(agents, { ...lease, ...(how === 'noted' ? blind : {}) });
    const office = await world.office(agents);
    const id = await begun(process);
    await entered;
    await office.runs.interrupt(id, NOTE);
    if (how === 'told') await until(async () => (await requests(office, id)).length > 0, 'the request being told');
    world.kill(process);
    const next = await world.another(scene().agents, lease);
    await until(async () => {
      await next.recovery.reconcile();
      return (await next.runs.get(id)).status === 'interrupted';
    }, 'the next owner stopping the run');
    expect(await stops(next, id)).toEqual(['run.interrupt_requested', 'run.interrupted']);
    expect(await requests(next, id)).toMatchObject([NOTE]);
    await world.end();
  });

  it('I10: is told once though the answer to its commit is lost', async () => {
    for (const lost of ['telling', 'stopping']) {
      const { agents, release, entered } = scene();
      const world = await World.over(store);
      const process = await world.process(agents, blind);
      const office = await world.office(agents);
      const id = await begun(process);
      await entered;
      if (lost === 'telling') {
        // The request itself is the first transition, telling it the second.
        let seen = 0;
        process.store.fail('transition', { lost: true, when: () => ++seen === 2 });
        await process.runs.interrupt(id, NOTE);
        await until(async () => (await requests(process, id)).length > 0, 'the request being told');
      } else {
        await office.runs.interrupt(id, NOTE);
        // Known only when the row is locked.
        process.store.fail('transition', { lost: true });
        process.worker.interrupt(id);
      }
      release.resolve();
      await reaches(process, id, 'interrupted');
      expect(await stops(process, id)).toEqual(['run.interrupt_requested', 'run.interrupted']);
      expect(process.told.map(({ sequence }) => sequence)).toEqual(
        (await journalOf(process.store, id)).map(({ sequence }) => sequence),
      );
      await world.end();
    }
  });

  it('RUN-5: a restart says who asked and why', async () => {
    const { agents, release } = scene();
    release.resolve();
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await begun(process);
    await reaches(process, id, 'completed');
    await process.runs.restart(id, NOTE);
    await reaches(process, id, 'completed');
    expect(await entriesOf(process.store, id, 'run.restarted')).toMatchObject([{ generation: 2, ...NOTE }]);
    await world.end();
  });

  if (store.transactions)
    it('JRN-5b: leaves a transactional call alone, and is told after it', async () => {
      const [reply, release, entered] = [signal(), signal(), signal()];
      const calls = [{ name: 'book' }, { name: 'book' }];
      const model = scriptedModel([{ calls, after: reply.promise }, { text: 'done' }]);
      const book = tool(
        'book',
        async () => {
          entered.resolve();
          await release.promise;
          return 'booked';
        },
        { recovery: 'transactional' },
      );
      const world = await World.over(store);
      const process = await world.process(agent(model, [book]), blind);
      const office = await world.office(agent(model, [book]));
      const id = await begun(process);
      await model.requested(1);
      await office.runs.interrupt(id, NOTE);
      reply.resolve();
      await entered.promise;
      // As its next poll would, in the middle of the transaction.
      process.worker.interrupt(id);
      release.resolve();
      await reaches(process, id, 'interrupted');
      expect(await entriesOf(process.store, id, 'tool.completed')).toHaveLength(1);
      expect(await stops(process, id)).toEqual(['run.interrupt_requested', 'run.interrupted']);
      await world.end();
    });
});
