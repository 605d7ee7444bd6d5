/** Two processes that have read the same state, and both write (RUN-1). Whoever writes by what it has read is refused where somebody else has written since. */
import { expect } from '@jest/globals';
import { notesOf } from '../../../packages/contract/lib/scenario.js';
import { journalOf, rowOf } from '../../support/journal-of.js';
import { allInteractions } from '../../support/sound-journal.js';
import { rounds, type Arena, type Contender } from './arena.js';
import { describeRaces } from './describe-races.js';
import type { Answer, Racer } from './racer.js';

const IDLE = { structure: { worker: false } };

/** A run at attempt 1, of which both know everything. */
async function known(arena: Arena, id: string): Promise<void> {
  const [owner] = arena.racers as [Racer];
  await owner.do('submit', id);
  await owner.do('claim', id, 'owner');
}

/** The same order to both, with an argument of its own for each. */
function both(arena: Arena, verb: string, argsOf: (n: number) => unknown[]): Promise<Answer[]> {
  const contenders = arena.racers.map((racer, n): Contender => ({ racer, verb, args: argsOf(n), mayConflict: true }));
  return arena.atOnce(...contenders);
}

/** Which of the two won; exactly one. */
function winner(answers: Answer[], lost: string): number {
  const codes = answers.map(({ code }) => code);
  expect([...codes].sort()).toEqual([lost, 'accepted'].sort());
  return codes.indexOf('accepted');
}

describeRaces('stale writes', [IDLE, IDLE], (race) => {
  race('RUN-1: of two changes of the run that both have read one is made, and the other is told', async (arena) => {
    await rounds(async (round) => {
      const id = `changed-${round}`;
      await known(arena, id);
      const { revision } = await rowOf(arena.store, id);
      const statuses = ['completed', 'failed'];
      const answers = await both(arena, 'settleIf', (n) => [id, revision, statuses[n]]);
      expect(answers.map(({ value }) => value).sort()).toEqual(['settled', 'stale']);
      const status = statuses[answers.findIndex(({ value }) => value === 'settled')];
      expect(await rowOf(arena.store, id)).toMatchObject({ status, revision: revision + 1 });
      expect(notesOf(await journalOf(arena.store, id))).toEqual([status]);
    });
  });

  race(
    'RUN-1, I4: of two that settle a run without another look one does, whatever the other believes',
    async (arena) => {
      await rounds(async (round) => {
        const id = `settled-${round}`;
        await known(arena, id);
        const statuses = ['completed', 'cancelled'];
        const answers = await both(arena, 'settle', (n) => [id, statuses[n]]);
        const status = statuses[winner(answers, 'ILLEGAL_TRANSITION')];
        expect((await rowOf(arena.store, id)).status).toBe(status);
        expect(notesOf(await journalOf(arena.store, id))).toEqual([status]);
      });
    },
  );

  race('STO-1: of two batches for the same place one lands, and a repetition of it is none', async (arena) => {
    await arena.racers[0]?.do('beat', 'owner', 600_000);
    await rounds(async (round) => {
      const id = `appended-${round}`;
      await known(arena, id);
      const isSame = round % 2 === 0;
      const answers = await both(arena, 'append', (n) => [
        [{ runId: id, attempt: 1, firstSequence: 3, values: [isSame ? 'same' : n] }],
      ]);
      const codes = answers.map(({ value }) => value[0]);
      expect([...codes].sort()).toEqual([isSame ? 'accepted' : 'SEQUENCE_CONFLICT', 'accepted']);
      expect(notesOf(await journalOf(arena.store, id))).toEqual([isSame ? 'same' : codes.indexOf('accepted')]);
    });
  });

  race('PPL-3, I7: of two decisions that are written without another look one binds', async (arena) => {
    await rounds(async (round) => {
      const id = `decided-${round}`;
      await known(arena, id);
      const ask = { id: `${id}/r1.m1.t0`, status: 'pending' };
      await arena.racers[0]?.do('ask', id, ask);
      const decisions = ['approved', 'denied'].map((status, n) => ({
        ...ask,
        status,
        decision: { decision: status === 'approved' ? 'approve' : 'deny', by: `person-${n}` },
      }));
      const answers = await both(arena, 'ask', (n) => [id, decisions[n]]);
      const [stored] = await allInteractions(arena.store, id);
      expect(stored).toMatchObject(decisions[winner(answers, 'STORE_CONFLICT')] as object);
    });
  });

  race('STR-1: of two that take a message out of the inbox without another look one does', async (arena) => {
    await rounds(async (round) => {
      const id = `sent-${round}`;
      await known(arena, id);
      const message = { requestId: 'm-1', order: 1, sender: 'ann', message: 'hi', status: 'queued' };
      await arena.racers[0]?.do('message', id, message);
      const statuses = ['delivered', 'withdrawn'];
      const answers = await both(arena, 'message', (n) => [id, { ...message, status: statuses[n] }]);
      const [stored] = await arena.query(`SELECT status FROM agent_run_inbox WHERE run_id = '${id}'`);
      expect(stored.status).toBe(statuses[winner(answers, 'STORE_CONFLICT')]);
    });
  });
});
