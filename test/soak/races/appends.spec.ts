/** The hot path against what takes its run away: an owner's append, alone and together with those of other runs, while another process cancels or takes over. */
import { expect } from '@jest/globals';
import { notesOf } from '../../../packages/contract/lib/scenario.js';
import { journalOf, rowOf } from '../../support/journal-of.js';
import { rounds, ROUNDS, type Arena } from './arena.js';
import { describeRaces } from './describe-races.js';

const OWNER = 'owner';
const IDLE = { structure: { worker: false } };
const NEIGHBOURS = 6;

/** Runs of the first racer at attempt 1, with one entry each. */
async function owned(arena: Arena, name: string, count: number): Promise<string[]> {
  const [owner] = arena.racers;
  const ids = Array.from({ length: count }, (_, n) => `${name}-${n}`);
  await Promise.all(
    ids.map(async (id) => {
      await owner!.do('submit', id);
      await owner!.do('claim', id, OWNER);
    }),
  );
  return ids;
}

function appendTo(ids: readonly string[]) {
  return ids.map((runId) => ({ runId, attempt: 1, firstSequence: 3, values: ['mine'] }));
}

/** The journal of the contended run says the same as the owner was told. */
async function checkContended(arena: Arena, id: string, told: string, rival: 'withdraw' | 'seize'): Promise<void> {
  const notes = notesOf(await journalOf(arena.store, id));
  expect(notes).toEqual(told === 'accepted' ? ['mine', 'rival'] : ['rival']);
  expect(['accepted', 'FENCED']).toContain(told);
  expect(await rowOf(arena.store, id)).toMatchObject(
    rival === 'withdraw' ? { status: 'cancelled', attempt: 1 } : { status: 'running', attempt: 2 },
  );
}

describeRaces('appends', [IDLE, IDLE], (race, place) => {
  for (const rival of ['withdraw', 'seize'] as const) {
    const what = rival === 'withdraw' ? 'a cancel' : 'a takeover';

    race(`OWN-2: an append and ${what} at once are in one order, whichever comes first`, async (arena) => {
      const [owner, other] = arena.racers as [any, any];
      await owner.do('beat', OWNER, 600_000);
      const told = await rounds(async (round) => {
        // Alone, or in one statement with those of unrelated runs.
        const ids = await owned(arena, `${rival}-${round}`, round % 2 === 0 ? 1 : NEIGHBOURS);
        const [appended] = await arena.atOnce(
          { racer: owner, verb: 'append', args: [appendTo(ids)] },
          { racer: other, verb: rival, args: [null, ids[0]] },
        );
        const [first, ...rest] = appended!.value as string[];
        expect(rest).toEqual(rest.map(() => 'accepted'));
        await checkContended(arena, ids[0] as string, first as string, rival);
        return first as string;
      });
      arena.expectBoth(told);
    });

    // Two processes on one file: no row can be held without holding all.
    if (place.type === 'sqlite') continue;

    race(
      `OWN-2: an append never lands on ${what} that is not committed yet, and stalls no append of another run`,
      async (arena) => {
        const [owner, other] = arena.racers as [any, any];
        await owner.do('beat', OWNER, 600_000);
        // One at a time: rivals that come together would share the transaction that is held back.
        await rounds(
          async (round) => {
            const ids = await owned(arena, `held-${rival}-${round}`, round % 2 === 0 ? 1 : NEIGHBOURS);
            const [contended, ...neighbours] = ids as [string, ...string[]];
            const rivals = other.order(rival, [contended, contended]);
            await other.tells(contended, 'held');
            const appended = owner.order('append', [appendTo(ids)]);
            // They land while the row of the contended one is held.
            await Promise.all(neighbours.map((id) => owner.tells(id, 'append')));
            await new Promise((next) => setTimeout(next, Math.random() * 3));
            expect(owner.effects.get(contended)).toBeUndefined();
            await other.do('letGo', contended);
            expect((await rivals).code).toBe('accepted');
            expect((await appended).value).toEqual(['FENCED', ...neighbours.map(() => 'accepted')]);
            await checkContended(arena, contended, 'FENCED', rival);
          },
          ROUNDS,
          1,
        );
      },
    );
  }
});
