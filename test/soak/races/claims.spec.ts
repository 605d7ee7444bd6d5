/** Workers that claim the same runs. */
import { expect } from '@jest/globals';
import { entriesOf, rowOf } from '../../support/journal-of.js';
import { dialectOf } from '../../../lib/stores/typeorm/database-of.js';
import { rounds, ROUNDS, type Arena } from './arena.js';
import { describeRaces } from './describe-races.js';
import { prompt } from './prompt.js';
import type { Racer } from './racer.js';

const IDLE = { structure: { worker: false } };

describeRaces('claims', [IDLE, IDLE], (race) => {
  race(
    'OWN-1: of two claims of a run one makes an attempt, and so it is when the lease of its owner is over',
    async (arena) => {
      const [a, b] = arena.racers as [Racer, Racer];
      await rounds(async (round) => {
        const id = `claimed-${round}`;
        await a.do('submit', id);
        for (const attempt of [1, 2]) {
          const workers = [`${id}-a-${attempt}`, `${id}-b-${attempt}`];
          await Promise.all(workers.map((worker) => a.do('beat', worker, 600_000)));
          const answers = await arena.atOnce(
            ...[a, b].map((racer, n) => ({ racer, verb: 'claim', args: [id, workers[n]] })),
          );
          const attempts = answers.map(({ value }) => value as number | null);
          expect([...attempts].sort()).toEqual([attempt, null]);
          const owner = workers[attempts.indexOf(attempt)] as string;
          expect(await rowOf(arena.store, id)).toMatchObject({ status: 'running', attempt, owner });
          await a.do('beat', owner, 1);
          await new Promise((next) => setTimeout(next, 5));
        }
        expect(await entriesOf(arena.store, id, 'run.started')).toHaveLength(2);
      });
    },
  );
});

const WORKER = {
  structure: { trigger: 'interval' },
  options: { lease: '4s', reconcileEvery: '50ms', backoffEvery: '50ms', pollInterval: '20ms', maxConcurrentRuns: 8 },
};
const RUNS = Math.ceil(ROUNDS * 2.5);

describeRaces('a crowd of workers', [WORKER, WORKER, WORKER, WORKER, IDLE], (race) => {
  // B007
  race(
    'OWN-1: 500 runs at once on four workers that sweep all the time have 500 effects, and no owner without a lease',
    async (arena) => {
      const office = arena.racers.at(-1) as Racer;
      const start = { agent: 'desk', prompt: prompt({ calls: [{ name: 'enter' }] }, { text: 'done' }) };
      let isOver = false;
      const watched = watchOwners(arena, () => isOver);
      // Most of them from a process that executes none, so that each has to be claimed; the others are started inline where a slot is free.
      const ids = await rounds(
        async (round) => {
          const racer = round % 5 === 0 ? (arena.racers[(round / 5) % 4] as Racer) : office;
          return (await racer.do('start', start)).id as string;
        },
        RUNS,
        32,
      );
      await allCompleted(arena);
      isOver = true;
      expect(await watched).toBeGreaterThan(10);
      const ledger = (await arena.query('SELECT operation_id FROM ledger')).map((row) => row.operation_id as string);
      expect(ledger.sort()).toEqual(ids.map((id) => `${id}/r1.m1.t0`).sort());
      const attempts = await arena.query('SELECT DISTINCT attempt FROM agent_runs');
      expect(attempts.map((row) => Number(row.attempt))).toEqual([1]);
      await arena.assertAllSound(ids);
    },
  );
});

/** Looks for running runs without a live lease, all the time. @returns how often it looked */
async function watchOwners(arena: Arena, isOver: () => boolean): Promise<number> {
  const { now, tables } = dialectOf(arena.databaseType);
  const ownerless =
    `SELECT r.id, r.owner, w.lease_expires_at FROM ${tables.runs} r LEFT JOIN ${tables.workers} w ON w.id = r.owner ` +
    `WHERE r.status = 'running' AND (w.id IS NULL OR w.lease_expires_at <= ${now})`;
  for (let looks = 1; ; looks++) {
    expect(await arena.query(ownerless)).toEqual([]);
    if (isOver()) return looks;
    await new Promise((next) => setTimeout(next, 5));
  }
}

async function allCompleted(arena: Arena): Promise<void> {
  const unfinished = `SELECT COUNT(*) AS runs FROM agent_runs WHERE status <> 'completed'`;
  for (let [left] = await arena.query(unfinished); Number(left.runs) > 0; [left] = await arena.query(unfinished))
    await new Promise((next) => setTimeout(next, 50));
}
