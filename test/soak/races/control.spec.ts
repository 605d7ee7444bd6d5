/** Whoever stops a run, speaks to it or takes it away, while it goes on in another process. */
import { expect } from '@jest/globals';
import { entriesOf, journalOf } from '../../support/journal-of.js';
import { ROUNDS, rounds, type Arena } from './arena.js';
import { describeRaces } from './describe-races.js';
import { prompt } from './prompt.js';
import type { Racer } from './racer.js';

/** What a worker logs when it finds that a run was taken away in the middle of a call whose outcome nobody knows. */
const UNCERTAIN_WORDS = /^(warn: the outcome of a call is unknown|error: a run needs attention) .*operation=r1\.m1\.t0/;

const WORKER = { structure: { trigger: false }, options: { pollInterval: '20ms' } };

/** A run that one process executes, up to a model's answer that its gate holds back, and the process beside it. */
async function held(arena: Arena, round: number, gate: string, ...steps: object[]) {
  const [a, b] = arena.racers as [Racer, Racer];
  const [owner, other] = round % 2 === 0 ? [a, b] : [b, a];
  const [first, ...more] = steps;
  const { id } = await owner.do('start', { agent: 'desk', prompt: prompt({ ...first, gate }, ...more) });
  await owner.tells(gate, 'model');
  return { owner, other, id: id as string };
}

describeRaces('control', [WORKER, WORKER], (race) => {
  // B151
  race('STR-1: a message around the end of a run is seen by its model, or refused and not stored', async (arena) => {
    const outcomes = await rounds(async (round) => {
      const gate = `steer-${round}`;
      const { owner, other, id } = await held(arena, round, gate, { text: 'done' });
      const sender = Math.floor(round / 2) % 2 === 0 ? owner : other;
      const steer = { racer: sender, verb: 'steer', args: [id, 'Wait.', { sender: 'ann', requestId: 'm-1' }] };
      const [, sent] = await arena.atOnce(
        { racer: owner, verb: 'open', args: [gate] },
        { ...steer, lateMs: Math.random() * 4 },
      );
      await arena.reaches(id, 'completed');
      const entries = await journalOf(arena.store, id);
      const delivered = entries.findIndex(({ type }) => type === 'run.steered');
      const stored = await arena.query(`SELECT status FROM agent_run_inbox WHERE run_id = '${id}'`);
      if (sent?.code === 'accepted') {
        expect(stored).toEqual([{ status: 'delivered' }]);
        // The model was asked again, with the message.
        expect(entries.slice(delivered).map(({ type }) => type)).toEqual([
          'run.steered',
          'model.started',
          'model.completed',
          'run.completed',
        ]);
      } else expect([sent?.code, stored, delivered]).toEqual(['ILLEGAL_TRANSITION', [], -1]);
      await arena.assertAllSound([id]);
      return sent?.code as string;
    }, ROUNDS * 4);
    arena.expectBoth(outcomes);
  });

  race(
    'RUN-3: a stop around a boundary and the end of a run stops it or not, and is never left hanging',
    async (arena) => {
      const outcomes = await rounds(async (round) => {
        const gate = `stop-${round}`;
        // Half of the answers are the last ones.
        const steps = round % 8 < 4 ? [{ text: 'done' }] : [{ calls: [{ name: 'pay' }] }, { text: 'done' }];
        const { owner, other, id } = await held(arena, round, gate, ...steps);
        const [, stopped] = await arena.atOnce(
          { racer: owner, verb: 'open', args: [gate] },
          // The owner hears of it at once, or when it looks next.
          { racer: Math.floor(round / 2) % 2 === 0 ? owner : other, verb: 'interrupt', args: [id] },
        );
        expect(['accepted', 'ILLEGAL_TRANSITION']).toContain(stopped?.code);
        const first = await arena.reaches(id, 'interrupted', 'completed');
        if (stopped?.code !== 'accepted') expect(first.status).toBe('completed');
        if (first.status === 'interrupted') await other.do('resume', id);
        const run = await arena.reaches(id, 'completed');
        expect(run.interruptRequest).toBeNull();
        expect(await arena.effectsOf(id)).toHaveLength(steps.length - 1);
        expect(await entriesOf(arena.store, id, 'run.interrupted')).toHaveLength(
          first.status === 'interrupted' ? 1 : 0,
        );
        await arena.assertAllSound([id]);
        return first.status;
      });
      arena.expectBoth(outcomes);
    },
  );

  race(
    'OWN-4, JRN-5: two who take a run from its owner, and the owner who goes on, make no effect twice',
    async (arena) => {
      const takeover = { allowRunningTakeover: true, confirmation: { by: 'ann', reason: 'it hangs' } };
      const outcomes = await rounds(async (round) => {
        const gate = `take-${round}`;
        const { owner, other, id } = await held(arena, round, gate, { calls: [{ name: 'pay' }] }, { text: 'done' });
        const resume = (racer: Racer) => ({ racer, verb: 'resume', args: [id, takeover], lateMs: Math.random() * 6 });
        const answers = await arena.atOnce(
          { racer: owner, verb: 'open', args: [gate] },
          // Whoever executes it then asks the model again.
          { racer: other, verb: 'open', args: [gate] },
          resume(owner),
          resume(other),
        );
        for (const { code } of answers.slice(2)) expect(['accepted', 'ILLEGAL_TRANSITION']).toContain(code);
        const run = await arena.reaches(id, 'completed', 'needs_attention');
        const taken = await entriesOf(arena.store, id, 'run.takeover_requested');
        // The second may have come when the first had led to a person already.
        const resumed = await entriesOf(arena.store, id, 'run.resume_requested');
        expect(run.attempt).toBe(1 + taken.length + resumed.length);
        const paid = (await arena.effectsOf(id)).length;
        if (run.status === 'completed') expect(paid).toBe(1);
        else {
          // Taken away in the middle of it: nobody guesses.
          expect(paid).toBeLessThanOrEqual(1);
          expect(run.attention).toMatchObject({ reason: 'uncertain_outcome', operationKey: 'r1.m1.t0' });
          await other.do('cancel', id);
        }
        await arena.assertAllSound([id]);
        return taken.length > 0 ? 'taken' : 'not taken';
      });
      arena.expectBoth(outcomes);
    },
    UNCERTAIN_WORDS,
  );
});
