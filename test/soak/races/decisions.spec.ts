/** What people decide about a run at the same moment, each in a process of their own. */
import { expect } from '@jest/globals';
import { entriesOf, journalOf } from '../../support/journal-of.js';
import { allInteractions } from '../../support/sound-journal.js';
import { rounds, type Arena } from './arena.js';
import { describeRaces } from './describe-races.js';
import { prompt } from './prompt.js';
import type { Racer } from './racer.js';

const approve = { decision: 'approve', by: 'ann' };
const deny = { decision: 'deny', by: 'bob', note: 'too much' };

interface Waiting {
  id: string;
  /** Its open asks, in call order. */
  asks: { id: string; expiresAt?: string }[];
}

const GATED = prompt({ calls: [{ name: 'refund' }] }, { text: 'done' });

/** A run of the first racer that waits for people. */
async function waiting(arena: Arena, script = GATED, options: object = {}): Promise<Waiting> {
  const [worker] = arena.racers as [Racer];
  const { id } = await worker.do('start', { agent: 'desk', prompt: script, ...options });
  const { interactions } = await worker.do('result', id);
  return { id, asks: interactions };
}

/** Who executes, and who only decides; every other round the other way round. */
function sides(arena: Arena, round: number): [Racer, Racer] {
  const [worker, office] = arena.racers as [Racer, Racer];
  return round % 2 === 0 ? [worker, office] : [office, worker];
}

const WORKER = { structure: { trigger: false }, options: { pollInterval: '20ms', approvalExpires: 'never' } };
const OFFICE = { structure: { worker: false }, options: { approvalExpires: 'never' } };

describeRaces('decisions', [WORKER, OFFICE], (race) => {
  // B043
  race('PPL-3: of an approval and a denial one wins, and what happens is what is stored', async (arena) => {
    const winners = await rounds(async (round) => {
      const { id, asks } = await waiting(arena);
      const [a, b] = sides(arena, round);
      const answers = await arena.atOnce(
        { racer: a, verb: 'respond', args: [id, asks[0]?.id, approve] },
        { racer: b, verb: 'respond', args: [id, asks[0]?.id, deny] },
      );
      expect(answers.map(({ code }) => code).sort()).toEqual(['ALREADY_DECIDED', 'accepted']);
      const approved = answers[0]?.code === 'accepted';
      await arena.reaches(id, 'completed');
      const [stored] = await allInteractions(arena.store, id);
      expect([stored?.status, (await arena.effectsOf(id)).length]).toEqual(approved ? ['used', 1] : ['denied', 0]);
      await arena.assertAllSound([id]);
      return approved ? 'approved' : 'denied';
    });
    arena.expectBoth(winners);
  });

  // B059
  race('RUN-2: a run that is cancelled begins nothing that is approved at the same moment', async (arena) => {
    const ends = await rounds(async (round) => {
      const { id, asks } = await waiting(arena);
      const [a, b] = sides(arena, round);
      const [approved, cancelled] = await arena.atOnce(
        { racer: a, verb: 'respond', args: [id, asks[0]?.id, approve] },
        { racer: b, verb: 'cancel', args: [id] },
      );
      const run = await arena.reaches(id, 'cancelled', 'completed');
      if (run.status === 'completed')
        expect([approved?.code, cancelled?.code]).toEqual(['accepted', 'ILLEGAL_TRANSITION']);
      else {
        expect(cancelled?.code).toBe('accepted');
        expect(['accepted', 'ALREADY_DECIDED']).toContain(approved?.code);
        // What it had begun by then it had been told to.
        const entries = await journalOf(arena.store, id);
        const began = entries.filter(({ type }) => type === 'tool.started').length;
        expect((await arena.effectsOf(id)).length).toBeLessThanOrEqual(began);
        if (approved?.code !== 'accepted') expect(began).toBe(0);
        const again = await b.order('respond', [id, asks[0]?.id, deny]);
        expect(again.code).toBe('ALREADY_DECIDED');
      }
      await arena.assertAllSound([id]);
      return approved?.code === 'accepted' ? 'approved first' : 'cancelled first';
    });
    arena.expectBoth(ends);
  });

  // B001, B019
  race('PPL-5: an answer and the end of its time, which both processes look for, leave one of both', async (arena) => {
    const outcomes = await rounds(async (round) => {
      const script = prompt({ calls: [{ name: 'settle', args: { ms: 150 } }] }, { text: 'done' });
      const { id, asks } = await waiting(arena, script);
      const [a, b] = sides(arena, round);
      const expiresIn = Math.max(0, new Date(asks[0]?.expiresAt as string).getTime() - Date.now());
      // Around the moment at which it expires: on a slow day an answer takes tens of milliseconds, so some are sent that much earlier.
      const around = (spreadMs: number) => Math.max(0, expiresIn - 2 - Math.random() * spreadMs);
      const [answered] = await arena.atOnce(
        { racer: a, verb: 'respond', args: [id, asks[0]?.id, approve], lateMs: around(80) },
        { racer: a, verb: 'expireInteractions', args: [], lateMs: around(4) },
        { racer: b, verb: 'expireInteractions', args: [], lateMs: around(4) },
      );
      const accepted = answered?.code === 'accepted';
      if (!accepted) expect(answered?.code).toBe('INTERACTION_EXPIRED');
      while ((await arena.reaches(id, 'waiting', 'pending', 'running', 'completed')).status === 'waiting')
        await b.do('expireInteractions');
      await arena.reaches(id, 'completed');
      const [stored] = await allInteractions(arena.store, id);
      expect([stored?.status, (await arena.effectsOf(id)).length]).toEqual(accepted ? ['used', 1] : ['expired', 0]);
      const told = await Promise.all(
        (['interaction.answered', 'interaction.expired'] as const).map((type) => entriesOf(arena.store, id, type)),
      );
      expect(told.map(({ length }) => length)).toEqual(accepted ? [1, 0] : [0, 1]);
      await arena.assertAllSound([id]);
      return accepted ? 'answered' : 'expired';
    });
    arena.expectBoth(outcomes);
  });

  // B048
  race(
    'PPL-6: decisions on sibling calls, while a third one ends, are all kept and wake the run once',
    async (arena) => {
      const [worker] = arena.racers as [Racer];
      await rounds(async (round) => {
        const gate = `siblings-${round}`;
        const script = prompt(
          { calls: [{ name: 'refund' }, { name: 'refund' }, { name: 'look', args: { gate } }] },
          { text: 'done' },
        );
        const { id } = await worker.do('start', { agent: 'desk', prompt: script });
        await worker.tells(id, 'look');
        const asks = await arena.asksOf(id, 2);
        const [a, b] = sides(arena, round);
        const answers = await arena.atOnce(
          { racer: a, verb: 'respond', args: [id, asks[0]?.id, approve] },
          { racer: b, verb: 'respond', args: [id, asks[1]?.id, approve] },
          { racer: worker, verb: 'open', args: [gate] },
        );
        expect(answers.map(({ code }) => code)).toEqual(['accepted', 'accepted', 'accepted']);
        const run = await arena.reaches(id, 'completed');
        expect(run.totals).toMatchObject({ turn: 2, results: 5 });
        expect((await arena.effectsOf(id)).map(({ tool }) => tool).sort()).toEqual(['look', 'refund', 'refund']);
        expect((await allInteractions(arena.store, id)).map(({ status }) => status)).toEqual(['used', 'used']);
        await arena.assertAllSound([id]);
      });
    },
  );

  race('BUD-2: of a grant and a cancel both may pass, but nothing runs after the cancel', async (arena) => {
    const script = prompt({ calls: [{ name: 'pay' }] }, { text: 'done' });
    const ends = await rounds(async (round) => {
      const { id } = await waiting(arena, script, { budget: { maxTotalTokens: 15 } });
      const [a, b] = sides(arena, round);
      const [granted, cancelled] = await arena.atOnce(
        { racer: a, verb: 'grantBudget', args: [id, 100, { by: 'ann' }] },
        { racer: b, verb: 'cancel', args: [id] },
      );
      const run = await arena.reaches(id, 'cancelled', 'completed');
      if (run.status === 'completed')
        expect([granted?.code, cancelled?.code]).toEqual(['accepted', 'ILLEGAL_TRANSITION']);
      else {
        expect(cancelled?.code).toBe('accepted');
        expect(['accepted', 'ILLEGAL_TRANSITION']).toContain(granted?.code);
        const began = (await entriesOf(arena.store, id, 'tool.started')).length;
        expect((await arena.effectsOf(id)).length).toBeLessThanOrEqual(began);
        if (granted?.code !== 'accepted') expect(began).toBe(0);
      }
      expect(await entriesOf(arena.store, id, 'budget.granted')).toHaveLength(granted?.code === 'accepted' ? 1 : 0);
      await arena.assertAllSound([id]);
      return granted?.code === 'accepted' ? 'granted first' : 'cancelled first';
    });
    arena.expectBoth(ends);
  });
});
