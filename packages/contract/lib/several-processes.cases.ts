import assert from 'node:assert/strict';
import {
  anInteraction,
  appendNotes,
  ask,
  beat,
  change,
  claim,
  expire,
  journal,
  loaded,
  note,
  notesOf,
  refusedWith,
  running,
  sameJson,
  settleInSession,
  submit,
  totalsOf,
  upTo,
  whileWriting,
} from './scenario.js';
import { storeCase, type StoreCase } from './store-case.js';

/**
 * What holds between processes: for stores that several of them may open. Two instances over the same data stand for two processes; nothing
 * one of them remembers may decide for the other.
 */
export const severalProcessesCases: readonly StoreCase[] = [
  storeCase('STO-9', 'what one process has committed, the other reads', async ({ store, second }) => {
    const other = await second();
    await running(store, { sessionId: 'session-1' });
    await appendNotes(store, 'run-1', 1, ['a'], totalsOf(1));
    await ask(store, [anInteraction()]);
    sameJson(await loaded(other, 'run-1'), await loaded(store, 'run-1'), 'the run');
    sameJson((await other.load('run-1'))?.lease, (await store.load('run-1'))?.lease, 'its lease');
    assert.deepEqual(notesOf(await journal(other, 'run-1')), ['a']);
    sameJson(await other.session('session-1'), await store.session('session-1'), 'the session');
    sameJson(await other.list({ limit: 10 }), await store.list({ limit: 10 }), 'the list');
    assert.equal((await other.interactions({ statuses: ['pending'], limit: 10 })).items.length, 1);
    assert.deepEqual(
      (await other.liveWorkers()).map(({ id }) => id),
      ['worker-1'],
    );
    await appendNotes(store, 'run-1', 1, ['b'], totalsOf(2));
    assert.equal((await loaded(other, 'run-1')).totals.results, 2, 'a reader never answers from memory');
  }),

  storeCase('OWN-1', 'of the workers of several processes that claim a run one gets it', async ({ store, second }) => {
    const stores = [store, await second()];
    for (const round of upTo(8)) {
      const id = `run-${round}`;
      await submit(stores[round % 2] ?? store, { id });
      const workers = upTo(6).map((n) => `worker-${n}`);
      for (const worker of workers) await beat(store, worker);
      const attempts = await Promise.all(workers.map((worker, n) => claim(stores[n % 2] ?? store, id, worker)));
      const won = workers.filter((_, n) => attempts[n] !== null);
      assert.equal(won.length, 1, 'one wins');
      const run = await loaded(store, id);
      assert.deepEqual([run.attempt, run.owner], [1, won[0]]);
      assert.equal((await journal(store, id)).filter(({ type }) => type === 'run.started').length, 1);
    }
  }),

  storeCase('SUB-2', 'of equal requests to several processes one creates the run', async ({ store, second }) => {
    const stores = [store, await second()];
    for (const round of upTo(5)) {
      const request = { requestScope: 'agent:support', requestId: `request-${round}` };
      const results = await Promise.all(
        upTo(6).map((n) => submit(stores[n % 2] ?? store, { id: `run-${round}-${n}`, ...request })),
      );
      assert.equal(results.filter(({ created }) => created).length, 1);
      assert.equal(new Set(results.map(({ run }) => run.id)).size, 1);
    }
  }),

  storeCase(
    'SUB-4',
    'submissions to a session through several processes get distinct orders, and one the session',
    async ({ store, second }) => {
      const stores = [store, await second()];
      const made = await Promise.all(
        upTo(10).map((n) => submit(stores[n % 2] ?? store, { id: `run-${n}`, sessionId: 'session-1' })),
      );
      assert.deepEqual(
        made.map(({ run }) => run.sessionOrder ?? 0).sort((a, b) => a - b),
        upTo(10),
      );
      assert.equal(made.filter(({ run }) => run.status === 'pending').length, 1);
    },
  ),

  storeCase(
    'SUB-4',
    'a settle here and a submission there leave no run queued behind nobody',
    async ({ store, second }) => {
      const other = await second();
      for (const round of upTo(8)) {
        const sessionId = `session-${round}`;
        const [first, next] = [`first-${round}`, `next-${round}`];
        await submit(store, { id: first, sessionId });
        await Promise.all([settleInSession(store, first, 'completed'), submit(other, { id: next, sessionId })]);
        const run = await loaded(store, next);
        assert.deepEqual([run.status, run.historyRunId], ['pending', first]);
        assert.equal((await store.session(sessionId))?.headRunId, next);
      }
    },
  ),

  storeCase('OWN-2', 'a cancel in one process fences the worker in the other', async ({ store, second }) => {
    const other = await second();
    for (const round of upTo(10)) {
      const id = `run-${round}`;
      await running(store, { id });
      const [appended] = await Promise.allSettled([
        store.append({ runId: id, attempt: 1, firstSequence: 3, entries: [note('result')], totals: totalsOf(1) }),
        change(other, id, { status: 'cancelled' }, [note('cancelled')]),
      ]);
      const landed = appended?.status === 'fulfilled';
      assert.deepEqual(notesOf(await journal(other, id)), landed ? ['result', 'cancelled'] : ['cancelled']);
      await refusedWith(
        'FENCED',
        store.append({
          runId: id,
          attempt: 1,
          firstSequence: landed ? 5 : 4,
          entries: [note('x')],
          totals: totalsOf(2),
        }),
        'the next append',
      );
    }
  }),

  storeCase(
    'OWN-4',
    'a worker of another process takes over when the lease has ended, and fences the old one',
    async (subject) => {
      const { store, second } = subject;
      const other = await second();
      await running(store);
      await beat(other, 'worker-2');
      assert.equal(await claim(other, 'run-1', 'worker-2'), null, 'a live lease holds everywhere');
      await expire(subject, 'worker-1');
      const due = await other.due({
        offers: [{ agent: 'support', version: '1', hash: null }],
        contractVersion: 1,
        limit: 5,
        takeovers: true,
        held: [],
      });
      assert.deepEqual(due.claimable, [{ id: 'run-1', status: 'running' }]);
      assert.equal(await claim(other, 'run-1', 'worker-2'), 2);
      const { sequence } = await loaded(store, 'run-1');
      await refusedWith(
        'FENCED',
        store.append({
          runId: 'run-1',
          attempt: 1,
          firstSequence: sequence + 1,
          entries: [note('late')],
          totals: totalsOf(9),
        }),
        'an append of the old owner',
      );
      const { held } = await store.due({ offers: [], contractVersion: 1, limit: 0, takeovers: false, held: ['run-1'] });
      assert.equal(held[0]?.attempt, 2, 'the old owner learns it from its poll');
    },
  ),

  storeCase(
    'STO-1',
    'different batches for one place from several processes: one stands',
    async ({ store, second }) => {
      const stores = [store, await second()];
      for (const round of upTo(5)) {
        const id = `run-${round}`;
        await running(stores[round % 2] ?? store, { id });
        const results = await Promise.allSettled(
          upTo(4).map((n) =>
            (stores[n % 2] ?? store).append({
              runId: id,
              attempt: 1,
              firstSequence: 3,
              entries: [note(n)],
              totals: totalsOf(n),
            }),
          ),
        );
        const won = results.flatMap(({ status }, index) => (status === 'fulfilled' ? [index + 1] : []));
        assert.deepEqual(notesOf(await journal(store, id)), won, 'exactly the accepted one');
        assert.equal(won.length, 1);
      }
    },
  ),

  storeCase('PPL-3', 'an approval here and a denial there: one binds', async ({ store, second }) => {
    const stores = [store, await second()];
    await submit(store, { id: 'run-1', status: 'waiting', waitingFor: ['approval'] });
    for (const round of upTo(6)) {
      const id = `ask-${round}`;
      await ask(stores[round % 2] ?? store, [anInteraction({ id })]);
      const outcomes = await Promise.all(
        (['approved', 'denied', 'approved', 'denied'] as const).map((status, n) =>
          (stores[n % 2] ?? store).transition<string | null>({
            runId: 'run-1',
            decide: ({ interactions }) => {
              const asked = interactions.find((one) => one.id === id);
              if (asked?.status !== 'pending') return { result: null };
              return {
                result: status,
                interactions: [{ ...asked, status, decision: { decision: 'deny', by: `bob-${n}` } }],
              };
            },
          }),
        ),
      );
      const bound = outcomes.flatMap((one) => (one.outcome === 'done' && one.result !== null ? [one.result] : []));
      assert.equal(bound.length, 1);
      const stored = (await store.interactions({ runId: 'run-1', limit: 100 })).items.find((one) => one.id === id);
      assert.equal(stored?.status, bound[0]);
    }
  }),

  storeCase(
    'RUN-1',
    'changes of one run from several processes are written one after the other',
    async ({ store, second }) => {
      const stores = [store, await second()];
      await submit(store, { id: 'run-1' }, { entries: [] });
      await Promise.all(
        upTo(20).map((n) =>
          (stores[n % 2] ?? store).transition({
            runId: 'run-1',
            decide: ({ run }) => ({
              result: null,
              run: { change: { recoveries: run.recoveries + 1 }, entries: [note(run.recoveries)] },
            }),
          }),
        ),
      );
      const run = await loaded(store, 'run-1');
      assert.deepEqual([run.recoveries, run.revision, run.sequence], [20, 21, 20]);
      assert.deepEqual(
        notesOf(await journal(store, 'run-1')),
        upTo(20).map((n) => n - 1),
      );
    },
  ),

  storeCase(
    'EVT-1',
    'a reader in another process sees a gapless beginning at any moment',
    async ({ store, second }) => {
      const other = await second();
      await running(store);
      await whileWriting(
        async () => {
          for (const n of upTo(20)) {
            const entries = [note(n), note(-n)];
            await store.append({ runId: 'run-1', attempt: 1, firstSequence: 1 + 2 * n, entries, totals: totalsOf(n) });
          }
        },
        async () => {
          const page = await other.readJournal('run-1', 0, 1_000);
          assert.ok(page);
          assert.deepEqual(
            page.entries.map(({ sequence }) => sequence),
            upTo(page.entries.length),
          );
          assert.equal(page.run.sequence, page.entries.length, 'the run is of the same moment');
        },
      );
    },
  ),
];
