import { describe, expect, it } from '@jest/globals';
import type { InteractionView } from '../../lib/contracts/run-view.js';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { agent, tool } from '../support/engine-harness.js';
import { entriesOf, journalOf, rowOf } from '../support/journal-of.js';
import { allInteractions } from '../support/sound-journal.js';
import { ALL_ENGINE_STORES, type EngineStore } from '../support/stores.js';
import { approve, asksOf, codeOf, deny, type Process, reaches, World } from './world.js';

const LONG = 600_000;

/** How often each race is run; `TEST_RACE_ROUNDS=200` for a thorough look. */
function rounds(store: EngineStore): number {
  return Number(process.env['TEST_RACE_ROUNDS'] ?? (store.isServer ? 8 : 40));
}

/** Sees at once what the other one did. */
const eager = { pollMs: 1, pollIdleMs: 1 };

/** Lets so many turns of the event loop pass, so that the other side gets a little further each time. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** One process that executes and one that only answers, over the same data; two gated calls and then the end. */
async function scene(store: EngineStore, calls = 1) {
  const ran = new Map<string, number>();
  const model = scriptedModel(
    [{ calls: Array.from({ length: calls }, (_, n) => ({ name: 'gated', args: { n } })) }, { text: 'done' }],
    { place: 'transcript' },
  );
  const gated = tool(
    'gated',
    (_input, { runId }) => {
      ran.set(runId, (ran.get(runId) ?? 0) + 1);
      return 'ok';
    },
    { recovery: 'manual', asks: () => ({}) },
  );
  const agents = agent(model, [gated]);
  const world = await World.over(store);
  const worker = await world.process(agents, eager);
  const office = await world.office(agents);
  const waiting = async (): Promise<{ id: string; asks: InteractionView[] }> => {
    const { id } = await worker.runs.start({ agent: 'support', prompt: 'go' });
    await reaches(worker, id, 'waiting');
    return { id, asks: await asksOf(worker, id, calls) };
  };
  return { world, worker, office, waiting, timesRun: (id: string) => ran.get(id) ?? 0, model };
}

/**
 * Both at once, the second a little later than in the round before; who begins alternates. In two of eight rounds the
 * second begins when the first has its answer, so that each wins at least once however fast the machine is.
 */
async function race(round: number, first: () => Promise<unknown>, second: () => Promise<unknown>): Promise<string[]> {
  const pair = async (begins: () => Promise<unknown>, follows: () => Promise<unknown>): Promise<string[]> => {
    const begun = codeOf(begins());
    if (round % 8 >= 6) await begun;
    else await turns(Math.floor(round / 4) % 12);
    return Promise.all([begun, codeOf(follows())]);
  };
  return round % 2 === 0 ? pair(first, second) : (await pair(second, first)).reverse();
}

describe.each(ALL_ENGINE_STORES)('two processes at once on $name', (store) => {
  // B043
  it(
    'PPL-3: the same approval given twice is one decision, and both get it',
    async () => {
      const { world, worker, office, waiting, timesRun } = await scene(store);
      for (let round = 0; round < rounds(store); round++) {
        const { id, asks } = await waiting();
        const answer = (from: Process) => () => from.runs.respond(id, asks[0]!.id, { ...approve, note: 'yes' });
        expect(await race(round, answer(worker), answer(office))).toEqual(['accepted', 'accepted']);
        await reaches(worker, id, 'completed');
        expect(timesRun(id)).toBe(1);
        expect(await entriesOf(worker.store, id, 'interaction.answered')).toHaveLength(1);
      }
      await world.end();
    },
    LONG,
  );

  it(
    'PPL-3: of an approval and a denial one wins, and what happens is what is stored',
    async () => {
      const { world, worker, office, waiting, timesRun } = await scene(store);
      const winners = new Set<string>();
      for (let round = 0; round < rounds(store); round++) {
        const { id, asks } = await waiting();
        const outcomes = await race(
          round,
          () => worker.runs.respond(id, asks[0]!.id, approve),
          () => office.runs.respond(id, asks[0]!.id, deny),
        );
        expect([...outcomes].sort()).toEqual(['ALREADY_DECIDED', 'accepted']);
        await reaches(worker, id, 'completed');
        const [stored] = await allInteractions(worker.store, id);
        const approved = outcomes[0] === 'accepted';
        expect([stored!.status, timesRun(id)]).toEqual(approved ? ['used', 1] : ['denied', 0]);
        winners.add(approved ? 'approve' : 'deny');
      }
      expect(winners).toEqual(new Set(['approve', 'deny']));
      await world.end();
    },
    LONG,
  );

  // B018
  it(
    'PPL-3: an answer that comes late moves nothing and leaves no entry',
    async () => {
      const { world, worker, office, waiting, timesRun } = await scene(store);
      for (let round = 0; round < rounds(store); round++) {
        const { id, asks } = await waiting();
        await office.runs.respond(id, asks[0]!.id, approve);
        await turns(round % 12);
        const late = round % 2 === 0 ? approve : deny;
        expect(await codeOf(worker.runs.respond(id, asks[0]!.id, late))).toBe(
          round % 2 === 0 ? 'accepted' : 'ALREADY_DECIDED',
        );
        await reaches(worker, id, 'completed');
        const types = (await journalOf(worker.store, id)).map(({ type }) => type);
        expect([types.length, types.filter((type) => type === 'interaction.answered').length]).toEqual([13, 1]);
        expect(timesRun(id)).toBe(1);
      }
      await world.end();
    },
    LONG,
  );

  it(
    'PPL-6: the last two decisions from two processes wake the run once',
    async () => {
      const { world, worker, office, waiting, timesRun } = await scene(store, 2);
      for (let round = 0; round < rounds(store); round++) {
        const { id, asks } = await waiting();
        const outcomes = await race(
          round,
          () => worker.runs.respond(id, asks[0]!.id, approve),
          () => office.runs.respond(id, asks[1]!.id, approve),
        );
        expect(outcomes).toEqual(['accepted', 'accepted']);
        expect(await reaches(worker, id, 'completed')).toMatchObject({ attempt: 2 });
        expect(timesRun(id)).toBe(2);
      }
      await world.end();
    },
    LONG,
  );

  // B059
  it(
    'RUN-2: a cancelled run never begins what is approved at the same moment',
    async () => {
      const { world, worker, office, waiting, timesRun } = await scene(store);
      for (let round = 0; round < rounds(store); round++) {
        const { id, asks } = await waiting();
        const [approved, cancelled] = await race(
          round,
          () => office.runs.respond(id, asks[0]!.id, approve),
          () => worker.runs.cancel(id),
        );
        const run = await reaches(worker, id, 'cancelled', 'completed');
        if (run.status === 'completed') expect([approved, cancelled]).toEqual(['accepted', 'ILLEGAL_TRANSITION']);
        else {
          expect(cancelled).toBe('accepted');
          expect(['accepted', 'ALREADY_DECIDED']).toContain(approved);
          // What it has begun it began before it was cancelled.
          const entries = await journalOf(worker.store, id);
          const began = entries.find(({ type }) => type === 'tool.started')?.sequence ?? 0;
          expect(timesRun(id)).toBeLessThanOrEqual(began > 0 ? 1 : 0);
          expect(began).toBeLessThan(entries.find(({ type }) => type === 'run.cancelled')!.sequence);
          if (approved === 'ALREADY_DECIDED') expect(timesRun(id)).toBe(0);
          expect(await codeOf(office.runs.respond(id, asks[0]!.id, deny))).toBe('ALREADY_DECIDED');
        }
      }
      await world.end();
    },
    LONG,
  );

  it(
    'PPL-5: of an approval and the end of its time one wins',
    async () => {
      const model = scriptedModel([{ calls: [{ name: 'gated' }] }, { text: 'done' }], { place: 'transcript' });
      let ran = 0;
      const gated = tool('gated', () => ran++, { recovery: 'manual', asks: () => ({ expiresInMs: 3 }) });
      const world = await World.over(store);
      const worker = await world.process(agent(model, [gated]), eager);
      const office = await world.office(agent(model, [gated]));
      for (let round = 0; round < rounds(store); round++) {
        const { id } = await worker.runs.start({ agent: 'support', prompt: 'go' });
        await reaches(worker, id, 'waiting');
        const [ask] = (await worker.runs.pendingInteractions({ runId: id })).interactions;
        const before = ran;
        const [approved] = await race(
          round,
          () => office.runs.respond(id, ask!.id, approve),
          () => worker.recovery.expireInteractions(),
        );
        if (approved === 'accepted') await reaches(worker, id, 'completed');
        else {
          expect(approved).toBe('INTERACTION_EXPIRED');
          await worker.recovery.expireInteractions();
          await reaches(worker, id, 'completed');
        }
        const [stored] = await allInteractions(worker.store, id);
        expect([stored!.status, ran - before]).toEqual(approved === 'accepted' ? ['used', 1] : ['expired', 0]);
      }
      await world.end();
    },
    LONG,
  );

  // B151
  it(
    'STR-1: a message accepted around the end of a run is seen by its model, and one that is refused is not stored',
    async () => {
      const model = scriptedModel(
        Array.from({ length: 5 }, () => ({ text: 'done' })),
        { place: 'transcript' },
      );
      const world = await World.over(store);
      const worker = await world.process(agent(model), eager);
      const office = await world.office(agent(model));
      const seen = { accepted: 0, refused: 0 };
      for (let round = 0; round < rounds(store) * 4; round++) {
        const sender = round % 2 === 0 ? worker : office;
        const requestId = `q-${round}`;
        const { id } = await worker.runs.start({ agent: 'support', prompt: `run ${round}` });
        const late = Math.floor(round / 8) % 8;
        if (late === 7) await reaches(worker, id, 'completed');
        else await turns(late);
        const outcome = await codeOf(sender.runs.steer(id, `message ${round}`, { sender: 'ann', requestId }));
        await reaches(worker, id, 'completed');
        const delivered = await entriesOf(worker.store, id, 'run.steered');
        const asked = model.requests.filter(({ messages }) => JSON.stringify(messages).includes(`"message ${round}"`));
        if (outcome === 'accepted') {
          seen.accepted++;
          expect([delivered.length, asked.length > 0]).toEqual([1, true]);
        } else {
          seen.refused++;
          expect([outcome, delivered.length, asked.length]).toEqual(['ILLEGAL_TRANSITION', 0, 0]);
        }
      }
      // Both sides of the race were met.
      expect(seen.accepted * seen.refused).toBeGreaterThan(0);
      await world.end();
    },
    LONG,
  );

  it(
    'RUN-3: a stop wanted around the end of a run stops it or not, and is never left hanging',
    async () => {
      const { world, worker, office, model } = await scene(store);
      const ended = new Set<string>();
      for (let round = 0; round < rounds(store); round++) {
        const { id } = await worker.runs.start({ agent: 'support', prompt: 'go' });
        await turns(Math.floor(round / 4) % 8);
        const asked = await codeOf((round % 2 === 0 ? worker : office).runs.interrupt(id));
        expect(['accepted', 'ILLEGAL_TRANSITION']).toContain(asked);
        const run = await reaches(worker, id, 'waiting', 'interrupted');
        ended.add(run.status);
        for (const ask of (await worker.runs.pendingInteractions({ runId: id })).interactions)
          await office.runs.respond(id, ask.id, approve);
        // Whoever stopped it says go; where the stop came too late to be seen, it is honoured now.
        const after = await reaches(worker, id, 'interrupted', 'completed');
        if (after.status === 'interrupted') await office.runs.resume(id);
        await reaches(worker, id, 'interrupted', 'completed', 'waiting');
        expect((await rowOf(worker.store, id)).status).not.toBe('failed');
      }
      expect(ended.size).toBeGreaterThan(0);
      expect(model.requests.length).toBeGreaterThanOrEqual(rounds(store));
      await world.end();
    },
    LONG,
  );

  it(
    'BUD-2: of a grant and a denial one wins',
    async () => {
      const model = scriptedModel([{ calls: [{ name: 'free' }] }, { text: 'done' }], { place: 'transcript' });
      const agents = agent(model, [tool('free', () => 'ok')]);
      const world = await World.over(store);
      const worker = await world.process(agents, eager);
      const office = await world.office(agents);
      for (let round = 0; round < rounds(store); round++) {
        const { id } = await worker.runs.start({ agent: 'support', prompt: 'go', budget: { maxTotalTokens: 15 } });
        await reaches(worker, id, 'waiting');
        const outcomes = await race(
          round,
          () => office.runs.grantBudget(id, 100, { by: 'ann' }),
          () => worker.runs.denyBudget(id, { by: 'bob' }),
        );
        expect([...outcomes].sort()).toEqual(['ILLEGAL_TRANSITION', 'accepted']);
        await reaches(worker, id, outcomes[0] === 'accepted' ? 'completed' : 'failed');
      }
      await world.end();
    },
    LONG,
  );
});
