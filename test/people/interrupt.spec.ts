import { describe, expect, it } from '@jest/globals';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import type { Scripted } from '../../lib/model/scripted/script-step.js';
import { agent, tool } from '../support/engine-harness.js';
import { entriesOf, rowOf } from '../support/journal-of.js';
import { signal } from '../support/signal.js';
import { ENGINE_STORES } from '../support/stores.js';
import { until } from '../support/until.js';
import { approve, asksOf, codeOf, type Process, reaches, World } from './world.js';

/** Tools that are at work until they are released; the ledger says which were begun. */
function scene(script: Scripted[], options: Parameters<typeof agent>[2] = {}) {
  const ledger: string[] = [];
  const release = signal();
  const entered = signal();
  const model = scriptedModel(script, { place: 'transcript' });
  const slow = tool(
    'slow',
    async ({ n }) => {
      ledger.push(`slow ${String(n)}`);
      entered.resolve();
      await release.promise;
      return n;
    },
    { recovery: 'manual' },
  );
  const gated = tool('gated', () => ledger.push('gated'), { recovery: 'manual', asks: () => ({}) });
  return { ledger, release, entered: entered.promise, model, agents: agent(model, [slow, gated], options) };
}

const SLOW_TWICE: Scripted[] = [
  {
    calls: [
      { name: 'slow', args: { n: 1 } },
      { name: 'slow', args: { n: 2 } },
    ],
  },
  { text: 'done' },
];

const blind = { pollMs: 60_000, pollIdleMs: 60_000 };

async function started(process: Process): Promise<string> {
  return (await process.runs.start({ agent: 'support', prompt: 'go' })).id;
}

describe.each(ENGINE_STORES)('interrupt on $name', (store) => {
  it('RUN-3: the request under way is committed, and what it asked for is begun by a resume', async () => {
    const reply = signal();
    const { agents, model, ledger, release } = scene([{ ...SLOW_TWICE[0], after: reply.promise }, { text: 'done' }]);
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await started(process);
    await model.requested(1);
    expect(await process.runs.interrupt(id, { by: 'ann' })).toMatchObject({ status: 'running' });
    reply.resolve();
    expect(await reaches(process, id, 'interrupted')).toMatchObject({ phase: 'suspended', turn: 1 });
    expect(ledger).toEqual([]);
    await until(() => process.worker.status().activeRuns === 0, 'the slot is free');
    release.resolve();
    await process.runs.resume(id, { by: 'ann' });
    await reaches(process, id, 'completed');
    expect([ledger, model.requests.length]).toEqual([['slow 1', 'slow 2'], 2]);
    expect(await entriesOf(process.store, id, 'run.resumed')).toMatchObject([
      { cause: 'resumed', by: 'ann', attempt: 2 },
    ]);
    await world.end();
  });

  it.each(['here', 'elsewhere'])(
    'RUN-3: the tools under way finish and are kept, those not begun are not, asked %s',
    async (where) => {
      const { agents, model, ledger, release, entered } = scene(SLOW_TWICE, { toolConcurrency: 1 });
      const world = await World.over(store);
      let process = await world.process(agents);
      const asker = where === 'here' ? process : await world.office(agents);
      const id = await started(process);
      await entered;
      await asker.runs.interrupt(id);
      // Elsewhere: seen with the next look at the runs held there.
      if (where === 'elsewhere') await process.worker.tick();
      release.resolve();
      await reaches(process, id, 'interrupted');
      expect(ledger).toEqual(['slow 1']);
      process = await world.restart(agents);
      expect((await process.runs.get(id)).status).toBe('interrupted');
      await process.runs.resume(id);
      await reaches(process, id, 'completed');
      expect([ledger, model.requests.length]).toEqual([['slow 1', 'slow 2'], 2]);
      await world.end();
    },
  );

  it('RUN-3: a run that finishes first just finishes', async () => {
    const reply = signal();
    const { agents, model } = scene([{ text: 'done', after: reply.promise }]);
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await started(process);
    await model.requested(1);
    await process.runs.interrupt(id);
    reply.resolve();
    expect(await reaches(process, id, 'completed', 'interrupted')).toMatchObject({
      status: 'completed',
      output: 'done',
    });
    expect((await rowOf(process.store, id)).interruptRequest).toBeNull();
    await world.end();
  });

  it('RUN-3: a pending run and one between two tries stop at once, and lose nothing', async () => {
    const { agents, model } = scene([{ fail: { status: 503 }, text: 'done' }]);
    const patient = { ...agents, modelRetry: { ...agents.modelRetry, initialDelayMs: 60_000, maxDelayMs: 60_000 } };
    const world = await World.over(store);
    const office = await world.office(patient);
    const id = await started(office);
    expect(await office.runs.interrupt(id, { by: 'ann', reason: 'not now' })).toMatchObject({ status: 'interrupted' });
    const process = await world.another(patient);
    await process.worker.tick();
    expect((await process.runs.get(id)).status).toBe('interrupted');
    expect(model.requests).toEqual([]);
    await process.runs.resume(id);
    await reaches(process, id, 'retry_wait');
    const stopped = await office.runs.interrupt(id);
    expect(stopped).toMatchObject({ status: 'interrupted' });
    expect(stopped.nextAttemptAt).toBeUndefined();
    await process.recovery.runDueBackoffs();
    expect(model.requests).toHaveLength(1);
    await process.runs.resume(id);
    await reaches(process, id, 'completed');
    expect(await entriesOf(process.store, id, 'run.interrupted')).toMatchObject([{ by: 'ann', reason: 'not now' }, {}]);
    expect(await entriesOf(process.store, id, 'model.started')).toMatchObject([{ attempt: 1 }, { attempt: 2 }]);
    await world.end();
  });

  it('RUN-3: a request that fails while a stop is wanted is not tried again by itself', async () => {
    const reply = signal();
    const { agents, model } = scene([
      async (_request, { attempt }) => {
        if (attempt === 1) await reply.promise;
        return { fail: { status: 503 }, text: 'done' };
      },
    ]);
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await started(process);
    await model.requested(1);
    await process.runs.interrupt(id);
    reply.resolve();
    await reaches(process, id, 'interrupted');
    await process.runs.resume(id);
    await reaches(process, id, 'completed');
    expect(model.requests).toHaveLength(2);
    await world.end();
  });

  it('RUN-3: a run that would wait for a person stops instead, and goes on only when it is told to', async () => {
    const { agents, ledger, release, entered } = scene([
      { calls: [{ name: 'slow', args: { n: 1 } }, { name: 'gated' }] },
      { text: 'done' },
    ]);
    const world = await World.over(store);
    const process = await world.process(agents);
    const id = await started(process);
    await entered;
    const [ask] = await asksOf(process, id, 1);
    await process.runs.interrupt(id);
    release.resolve();
    await reaches(process, id, 'interrupted');
    expect(await codeOf(process.runs.resume(id))).toBe('OPEN_INTERACTIONS');
    await process.runs.respond(id, ask!.id, approve);
    await process.recovery.reconcile();
    expect(await process.runs.get(id)).toMatchObject({ status: 'interrupted', interactions: [] });
    expect(ledger).toEqual(['slow 1']);
    await process.runs.resume(id);
    await reaches(process, id, 'completed');
    expect(ledger).toEqual(['slow 1', 'gated']);
    await world.end();
  });

  it('RUN-3: what was decided before the stop is taken up after it', async () => {
    const { agents, ledger, release, entered } = scene([
      { calls: [{ name: 'slow', args: { n: 1 } }, { name: 'gated' }] },
      { text: 'done' },
    ]);
    const world = await World.over(store);
    let process = await world.process(agents);
    const id = await started(process);
    await entered;
    const [ask] = await asksOf(process, id, 1);
    await process.runs.respond(id, ask!.id, approve);
    await process.runs.interrupt(id);
    release.resolve();
    await reaches(process, id, 'interrupted');
    process = await world.restart(agents);
    await process.runs.resume(id);
    await reaches(process, id, 'completed');
    expect(ledger).toEqual(['slow 1', 'gated']);
    await world.end();
  });

  it('RUN-3: a stop is kept through a shutdown', async () => {
    const { agents, ledger, release, entered } = scene(SLOW_TWICE, { toolConcurrency: 1 });
    const world = await World.over(store);
    let process = await world.process(agents);
    const id = await started(process);
    await entered;
    await process.runs.interrupt(id);
    const drained = process.worker.drain();
    release.resolve();
    await drained;
    process = await world.restart(agents);
    await reaches(process, id, 'interrupted');
    expect(ledger).toEqual(['slow 1']);
    await process.runs.resume(id);
    await reaches(process, id, 'completed');
    await world.end();
  });

  it('RUN-3: a stop that came too late to be seen holds when the run would come back by itself', async () => {
    const { agents, ledger, release, entered } = scene([
      { calls: [{ name: 'slow', args: { n: 1 } }, { name: 'gated' }] },
      { text: 'done' },
    ]);
    const world = await World.over(store);
    const process = await world.process(agents, blind);
    const office = await world.office(agents);
    const id = await started(process);
    await entered;
    const [ask] = await asksOf(office, id, 1);
    await office.runs.interrupt(id);
    release.resolve();
    await reaches(office, id, 'waiting');
    await process.runs.respond(id, ask!.id, approve);
    await reaches(office, id, 'interrupted');
    expect(ledger).toEqual(['slow 1']);
    await process.runs.resume(id);
    await reaches(office, id, 'completed');
    expect(ledger).toEqual(['slow 1', 'gated']);
    await world.end();
  });

  it('RUN-3: whoever says go takes an earlier stop back', async () => {
    const { agents, release, entered } = scene([
      { calls: [{ name: 'slow', args: { n: 1 } }, { name: 'gated' }] },
      { text: 'done' },
    ]);
    const world = await World.over(store);
    const manual = { resumeAfterAnswers: 'manual' } as const;
    const process = await world.process(agents, { ...blind, ...manual });
    const office = await world.office(agents, manual);
    const id = await started(process);
    await entered;
    const [ask] = await asksOf(office, id, 1);
    await office.runs.interrupt(id);
    release.resolve();
    await reaches(office, id, 'waiting');
    await process.runs.respond(id, ask!.id, approve);
    await process.runs.resume(id);
    await reaches(office, id, 'completed');
    await world.end();
  });

  it('RUN-3: stopping twice is stopping, a run that waits or is settled cannot be stopped, and it can be cancelled', async () => {
    const { agents } = scene([{ calls: [{ name: 'gated' }] }, { text: 'done' }]);
    const world = await World.over(store);
    const office = await world.office(agents);
    const stopped = await started(office);
    await office.runs.interrupt(stopped);
    const { sequence } = await rowOf(office.store, stopped);
    expect(await office.runs.interrupt(stopped)).toMatchObject({ status: 'interrupted', sequence });
    expect(await office.runs.cancel(stopped)).toMatchObject({ status: 'cancelled' });
    expect(await codeOf(office.runs.interrupt(stopped))).toBe('ILLEGAL_TRANSITION');
    const process = await world.another(agents);
    const waiting = await started(process);
    await reaches(process, waiting, 'waiting');
    expect(await codeOf(process.runs.interrupt(waiting))).toBe('ILLEGAL_TRANSITION');
    expect(await codeOf(process.runs.interrupt('no-such-run'))).toBe('RUN_NOT_FOUND');
    await world.end();
  });

  it('SUB-4: an interrupted run holds its session', async () => {
    const { agents } = scene([{ text: 'done' }]);
    const world = await World.over(store);
    const office = await world.office(agents);
    const { id } = await office.runs.start({ agent: 'support', prompt: 'go', sessionId: 's' });
    await office.runs.interrupt(id);
    const start = { agent: 'support', prompt: 'next', sessionId: 's' };
    expect(await codeOf(office.runs.start(start))).toBe('SESSION_BUSY');
    const queued = await office.runs.start({ ...start, enqueue: true });
    expect(await codeOf(office.runs.interrupt(queued.id))).toBe('ILLEGAL_TRANSITION');
    const process = await world.another(agents);
    await process.runs.resume(id);
    await reaches(process, queued.id, 'completed');
    await world.end();
  });
});
