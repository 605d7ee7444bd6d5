import { describe, expect, it } from '@jest/globals';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { agent, tool } from '../support/engine-harness.js';
import { entriesOf, journalOf } from '../support/journal-of.js';
import { ENGINE_STORES } from '../support/stores.js';
import { until } from '../support/until.js';
import { approve, asksOf, codeOf, deny, type Process, reaches, World } from './world.js';

const TAKEOVER = { allowRunningTakeover: true, confirmation: { by: 'ops', reason: 'its machine is gone' } };

/** One gated call, and an answer after it whose first request is never answered. */
function scene(isCut = false) {
  const ledger: string[] = [];
  const life = { expiresInMs: 60_000 };
  const model = scriptedModel(
    [
      { calls: [{ name: 'gated' }] },
      (_request, { attempt }) => (isCut && attempt === 1 ? { hang: 'deaf' } : { text: 'done' }),
    ],
    { place: 'transcript' },
  );
  const gated = tool('gated', () => void ledger.push('gated'), { recovery: 'manual', asks: () => ({ ...life }) });
  return { ledger, life, model, agents: agent(model, [gated]) };
}

async function waiting(process: Process) {
  const { id } = await process.runs.start({ agent: 'support', prompt: 'go' });
  await reaches(process, id, 'waiting');
  const [ask] = await asksOf(process, id, 1);
  return { id, ask: ask! };
}

describe.each(ENGINE_STORES)('decisions that come late, before a crash, on $name', (store) => {
  // B018
  it('PPL-3, JRN-4: answers after the first one leave nothing that the next process could stumble over', async () => {
    const { agents, model, ledger } = scene(true);
    const world = await World.over(store);
    const doomed = await world.process(agents);
    const office = await world.office(agents);
    const { id, ask } = await waiting(doomed);
    await office.runs.respond(id, ask.id, approve);
    await model.requested(2);
    const before = await journalOf(office.store, id);
    const late = [approve, deny, approve, deny];
    const answers = late.map((decision, n) => (n < 2 ? office : doomed).runs.respond(id, ask.id, decision));
    expect(await Promise.all(answers.map(codeOf))).toEqual([
      'accepted',
      'ALREADY_DECIDED',
      'accepted',
      'ALREADY_DECIDED',
    ]);
    expect(await journalOf(office.store, id)).toEqual(before);
    world.kill(doomed);
    const next = await world.another(agents);
    await next.runs.resume(id, TAKEOVER);
    await reaches(next, id, 'completed');
    expect((await journalOf(next.store, id)).slice(0, before.length)).toEqual(before);
    expect(ledger).toEqual(['gated']);
    expect(model.requests[2]?.messages).toEqual(model.requests[1]?.messages);
    await world.end();
  });

  // B019
  it('PPL-5, JRN-4: what was journaled first decides, though the time is over when the next process goes on', async () => {
    const { agents, ledger, life } = scene();
    const world = await World.over(store);
    const worker = await world.process(agents);
    const office = await world.office(agents);
    // As soon as the time is over, and yet answered in time, however slow this machine is.
    let answered: Awaited<ReturnType<typeof waiting>> | undefined;
    for (life.expiresInMs = 50; !answered; life.expiresInMs *= 2) {
      worker.worker.resume();
      const one = await waiting(worker);
      worker.worker.pause();
      if ((await codeOf(office.runs.respond(one.id, one.ask.id, approve))) === 'accepted') answered = one;
      else await office.runs.cancel(one.id);
    }
    world.kill(worker);
    await until(() => Date.now() > answered.ask.expiresAt!.getTime(), 'the time is over', { withinMs: 60_000 });
    await office.recovery.expireInteractions();
    const next = await world.another(agents);
    await reaches(next, answered.id, 'completed');
    expect(ledger).toEqual(['gated']);
    expect(await entriesOf(next.store, answered.id, 'interaction.expired')).toEqual([]);
    await world.end();
  });

  // B019
  it('PPL-5, JRN-4: what has expired stays so for the next process, whoever answers then', async () => {
    const { agents, ledger, life, model } = scene();
    life.expiresInMs = 1;
    const world = await World.over(store);
    const worker = await world.process(agents);
    const office = await world.office(agents);
    const { id, ask } = await waiting(worker);
    worker.worker.pause();
    await until(() => Date.now() > ask.expiresAt!.getTime(), 'the time is over');
    await office.recovery.expireInteractions();
    world.kill(worker);
    expect(await codeOf(office.runs.respond(id, ask.id, approve))).toBe('INTERACTION_EXPIRED');
    const next = await world.another(agents);
    await reaches(next, id, 'completed');
    expect(ledger).toEqual([]);
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({ content: [{ outcome: 'denied' }] });
    expect(await entriesOf(next.store, id, 'interaction.answered')).toEqual([]);
    await world.end();
  });
});
