/** A session between processes: who has it, who is next, and when it goes on. */
import { expect } from '@jest/globals';
import type { Run } from '../../../lib/contracts/run-view.js';
import { entriesOf } from '../../support/journal-of.js';
import { rounds, type Arena } from './arena.js';
import { describeRaces } from './describe-races.js';
import { prompt } from './prompt.js';
import type { Racer } from './racer.js';

const WORKER = { structure: { trigger: false }, options: { pollInterval: '20ms' } };

/** Holds its session until somebody decides. */
const WAITING = prompt({ calls: [{ name: 'refund' }] }, { text: 'done' });
const SHORT = prompt({ text: 'done' });

interface Row {
  id: string;
  session_order: unknown;
  status: string;
  history_run_id: string | null;
  started_at: unknown;
}

/** All runs of the session, in its order, once the last one is over. */
async function over(arena: Arena, sessionId: string, lastId: string): Promise<Row[]> {
  await arena.reaches(lastId, 'completed');
  return arena.query(
    `SELECT id, session_order, status, history_run_id, started_at FROM agent_runs WHERE session_id = '${sessionId}' ORDER BY session_order`,
  );
}

describeRaces('sessions', [WORKER, WORKER], (race) => {
  race(
    'SUB-4: of two starts on one session one gets it; those in line run in the order of their places',
    async (arena) => {
      const [a, b] = arena.racers as [Racer, Racer];
      await rounds(async (round) => {
        const sessionId = `line-${round}`;
        const start = (racer: Racer, options: object) => ({
          racer,
          verb: 'start',
          args: [{ agent: 'desk', sessionId, ...options }],
        });
        const first = await arena.atOnce(start(a, { prompt: WAITING }), start(b, { prompt: WAITING }));
        expect(first.map(({ code }) => code).sort()).toEqual(['SESSION_BUSY', 'accepted']);
        const head = first.find(({ code }) => code === 'accepted')?.value.id as string;
        const line = await arena.atOnce(...[a, b].map((racer) => start(racer, { prompt: SHORT, enqueue: true })));
        expect(line.map(({ value }) => value.status)).toEqual(['queued', 'queued']);
        await b.do('cancel', head);
        const last = await arena.query(
          `SELECT id FROM agent_runs WHERE session_id = '${sessionId}' ORDER BY session_order DESC LIMIT 1`,
        );
        const rows = await over(arena, sessionId, last[0].id);
        expect(rows.map((row) => Number(row.session_order))).toEqual([1, 2, 3]);
        expect(rows.map(({ status }) => status)).toEqual(['cancelled', ...line.map(() => 'completed')]);
        // Each sees the one before it, so none began before that one was over.
        expect(rows.map((row) => row.history_run_id)).toEqual([null, null, rows[1]?.id]);
        const begun = rows.slice(1).map((row) => Number(row.started_at));
        expect(begun).toEqual([...begun].sort((x, y) => x - y));
        await arena.assertAllSound(rows.map(({ id }) => id));
      });
    },
  );

  race(
    'SUB-4: of two owners that open one session at once, one has it and the other reads nothing, in transactions of the hosts too',
    async (arena) => {
      const [a, b] = arena.racers as [Racer, Racer];
      // A process has one connection to SQLite: a worker beside a transaction of the host waits for it.
      const ways = arena.databaseType === 'better-sqlite3' ? ['start'] : ['start', 'startInside'];
      let foreignReaders = 0;
      await rounds(async (round) => {
        const way = ways[round % ways.length] as string;
        const sessionId = `owned-${round}`;
        const contenders = [a, b].map((racer, index) => {
          const sessionOwner = `tenant-${index}`;
          const text = `secret of ${sessionOwner}`;
          const request = { agent: 'desk', sessionId, sessionOwner, enqueue: true, prompt: prompt({ text }) };
          return { racer, verb: way, args: way === 'start' ? [request] : [request, `${sessionId}-${index}`, 'commit'] };
        });
        const answers = await arena.atOnce(...contenders);
        const outcomes = way === 'start' ? answers : answers.map(({ value }) => value as { code: string; value: Run });
        expect(outcomes.map(({ code }) => code).sort()).toEqual(['FORBIDDEN', 'accepted']);
        const winner = outcomes.findIndex(({ code }) => code === 'accepted');
        await arena.reaches(outcomes[winner]?.value.id as string, 'completed');
        for (const [index, racer] of [a, b].entries()) {
          const [read] = await arena.atOnce({
            racer,
            verb: 'sessionMessages',
            args: [sessionId, { sessionOwner: `tenant-${index}` }],
          });
          expect(read?.code).toBe(index === winner ? 'accepted' : 'FORBIDDEN');
          if (JSON.stringify(read?.value ?? null).includes(`tenant-${1 - index}`)) foreignReaders += 1;
        }
        const rows = await arena.query(`SELECT id FROM agent_runs WHERE session_id = '${sessionId}'`);
        expect(rows).toHaveLength(1);
      });
      expect(foreignReaders).toBe(0);
    },
  );

  race('RUN-1, SUB-4: a cancel and the end of a run leave one of both, and the session goes on once', async (arena) => {
    const [a, b] = arena.racers as [Racer, Racer];
    const endings = await rounds(async (round) => {
      const sessionId = `end-${round}`;
      const [worker, office] = round % 2 === 0 ? [a, b] : [b, a];
      const start = { agent: 'desk', sessionId, prompt: prompt({ text: 'done', gate: sessionId }) };
      const { id } = await worker.do('start', start);
      const next = await office.do('start', { ...start, prompt: SHORT, enqueue: true });
      expect(next.status).toBe('queued');
      const [, cancelled] = await arena.atOnce(
        { racer: worker, verb: 'open', args: [sessionId] },
        { racer: office, verb: 'cancel', args: [id] },
      );
      const rows = await over(arena, sessionId, next.id);
      const status = cancelled?.code === 'accepted' ? 'cancelled' : 'completed';
      expect(['accepted', 'ILLEGAL_TRANSITION']).toContain(cancelled?.code);
      expect(rows.map((row) => row.status)).toEqual([status, 'completed']);
      expect(rows[1]?.history_run_id).toBe(status === 'completed' ? id : null);
      expect(await entriesOf(arena.store, next.id, 'run.dequeued')).toHaveLength(1);
      expect(await entriesOf(arena.store, next.id, 'run.started')).toHaveLength(1);
      expect(await arena.store.session(sessionId)).toMatchObject({ headRunId: null });
      await arena.assertAllSound([id, next.id]);
      return status;
    });
    arena.expectBoth(endings);
  });

  race('SUB-4: a run that gets in line while the one before it ends is always begun', async (arena) => {
    const [a, b] = arena.racers as [Racer, Racer];
    const places = await rounds(async (round) => {
      const sessionId = `tail-${round}`;
      const [worker, office] = round % 2 === 0 ? [a, b] : [b, a];
      const start = { agent: 'desk', sessionId, prompt: prompt({ text: 'done', gate: sessionId }) };
      const { id } = await worker.do('start', start);
      const [, started] = await arena.atOnce(
        { racer: worker, verb: 'open', args: [sessionId] },
        // The longer it takes to end.
        { racer: office, verb: 'start', args: [{ ...start, prompt: SHORT, enqueue: true }], lateMs: Math.random() * 6 },
      );
      const rows = await over(arena, sessionId, started?.value.id);
      expect(rows.map((row) => [row.status, row.history_run_id])).toEqual([
        ['completed', null],
        ['completed', id],
      ]);
      await arena.assertAllSound(rows.map((row) => row.id));
      return started?.value.status === 'queued' ? 'queued' : 'at the head';
    });
    arena.expectBoth(places);
  });
});
